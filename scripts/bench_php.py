#!/usr/bin/env python3
"""Print what perfdiff says of each fixture program in PHP: verdict, the guilty function's place, how its cost grows, how long it took.

The programs are in `fixtures/php`, each a pair of revisions with one known change, or with none that costs anything. With `--room`, what
was measured is kept there, and the same command goes on where it was interrupted.
"""

from __future__ import annotations

import fixture_verdicts

from programs import PHP

if __name__ == "__main__":
    assert __doc__ is not None
    fixture_verdicts.compare(__doc__.partition("\n")[0], "Fixture programs in PHP", PHP, "php")
