#!/usr/bin/env python3
"""Print what perfdiff says of each fixture program behind a server: verdict, the guilty function's place, how long it took.

The programs are in `fixtures/server`: in some, head asks its database for each element by itself; in one, the database alone got slower.
With `--room`, what was measured is kept there, and the same command goes on where it was interrupted.
"""

from __future__ import annotations

import fixture_verdicts

from programs import SERVER

if __name__ == "__main__":
    assert __doc__ is not None
    fixture_verdicts.compare(__doc__.partition("\n")[0], "Fixture programs behind a server", SERVER, "server")
