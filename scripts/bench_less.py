#!/usr/bin/env python3
"""Print what perfdiff says of programs that do less, and of true improvements: none that does less may be called an improvement.

The programs are in `fixtures/less`. How much faster head is was measured by hand, by `tests/hidden_truth.py`.
"""

from __future__ import annotations

import family_verdicts

from programs import LESS

if __name__ == "__main__":
    assert __doc__ is not None
    family_verdicts.compare(__doc__.partition("\n")[0], "Programs that do less, and improvements", LESS)
