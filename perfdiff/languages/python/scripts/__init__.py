"""Programs that the target's interpreter runs: each stands alone, prints JSON, and runs on CPython 3.10 and later."""
