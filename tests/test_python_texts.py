"""Texts of definitions, read again apart from their files."""

from __future__ import annotations

from pathlib import Path

from perfdiff.languages.python.index import index
from perfdiff.languages.python.texts import parts

SOURCE = """\
@wrapped(
    by=1,
)
def outer(session):
    def inner():
        pass
    inner()

class Box:
    @property
    def size(self):
        def inner():
            pass
        return inner()
"""


def test_decorated_functions_are_read_where_they_stand_whatever_is_defined_inside(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text(SOURCE)
    functions = {each.name: each for each in index(tmp_path, depth=1).functions.values()}
    outer, size = parts(functions["box.outer"]), parts(functions["box.Box.size"])
    assert "".join(outer.decorators) == "wrapped(by=1)"
    assert "".join(size.decorators) == "property"
    assert (outer.body[-3:], size.body[-4:]) == (("inner", "(", ")"), ("return", "inner", "(", ")"))
