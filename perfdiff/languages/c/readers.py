"""The C text of a feature: one call of a `pd_*` reader, with the cell's number left as `{cell}` (see `docs/architecture/probes.md`)."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.languages.c.layouts import Scalar
from perfdiff.languages.protocol import Load

_READERS = {
    Load.SIGNED: ("pd_signed", "pd_signed_t"),
    Load.UNSIGNED: ("pd_unsigned", "pd_cell_t"),
    Load.FLOATING: ("pd_floating", "double"),
}


def value(load: Load, expression: str) -> str:
    """Read an expression of arithmetic type."""
    reader, kind = _READERS[load]
    return _call(reader, f"({kind})({expression})")


def string(load: Load, pointer: str) -> str:
    """Return C code that reads the length of a string, or the size or depth of the file that it names."""
    reader = {Load.TEXT: "pd_text", Load.FILE: "pd_file", Load.DEPTH: "pd_depth"}[load]
    return _call(reader, pointer)


def dynamic_type(pointer: str) -> str:
    """Return C code that reads the type behind the vtable pointer of an object."""
    return _call("pd_type", pointer)


def field(base: str, offsets: Sequence[int], shape: Scalar) -> str:
    """Return C code that reads a number.

    It lies at the last of `offsets`; each one before it leads, from `base` on, to a pointer that is followed.
    """
    return _call("pd_field", base, shape.kind, str(len(offsets)), *_longs(offsets))


def field_string(base: str, offsets: Sequence[int]) -> str:
    """Return C code that reads the length of a string; `offsets` lead from `base` to the pointer to it, as in `field`."""
    return _call("pd_field_text", base, str(len(offsets)), *_longs(offsets))


def span(base: str, offsets: Sequence[int], last: int, element: int) -> str:
    """Return C code that counts the elements between the pointer at the end of `offsets` and that at offset `last` of its object."""
    return _call("pd_span", base, f"{element}UL", str(len(offsets)), *_longs([*offsets, last]))


def _call(reader: str, *arguments: str) -> str:
    return f"{reader}({', '.join(('&pd_frame_', '{cell}', *arguments))})"


def _longs(offsets: Sequence[int]) -> list[str]:
    return [f"{offset}UL" for offset in offsets]
