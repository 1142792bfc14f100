#!/usr/bin/env python3
"""Print what perfdiff says of programs whose change hides outside of functions: none that is slower may be called safe.

The programs are in `fixtures/hidden`, in which head is slower for what lies in data, settings, documents, links or the order of
definitions, or differs there as much and is not slower. How much slower head is was measured by hand, by `tests/hidden_truth.py`.
"""

from __future__ import annotations

import family_verdicts

from programs import HIDDEN

if __name__ == "__main__":
    assert __doc__ is not None
    family_verdicts.compare(__doc__.partition("\n")[0], "Programs whose change hides", HIDDEN)
