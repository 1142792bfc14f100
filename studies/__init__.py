"""Studies: measurements of accuracy and speed, whose figures stand in `docs/figures.md` and `docs/studies`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
