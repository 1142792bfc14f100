"""What a folder says of pairs of upstream revisions can be read, and makes sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.support import upstream

PAIR = f"""
[[pair]]
name = "one"
base = "{"a" * 40}"
head = "{"b" * 40}"
effect = "none"
why = "Nothing that runs changes."
"""


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (PAIR.replace("a" * 40, "v1.2"), "40 hexadecimal digits"),
        (PAIR.replace("b" * 40, "a" * 40), "two commits"),
        (PAIR.replace('"none"', '"slower"'), "guilty functions and a ratio"),
        (PAIR + 'guilty = ["insert"]\nratio = [1.06, 1.12]', "guilty functions and a ratio"),
        (PAIR.replace('"none"', '"slower"') + 'guilty = ["insert"]\nratio = [1.12, 1.06]', "low, high"),
        (PAIR.replace("changes.", "changes"), "a sentence"),
        (PAIR + PAIR, "one name"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(wrong: str, says: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / upstream.CONFIGURATION).touch()
    (folder / upstream.PAIRS).write_text(f'repository = "https://github.com/owner/project"\n{wrong}')
    with pytest.raises(ValueError, match=says):
        upstream.project(folder)
