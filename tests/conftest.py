"""What all tests need."""

from __future__ import annotations

import signal

# A shell starts background jobs with Ctrl-C ignored, and programs pass that on to theirs: tests that interrupt would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
