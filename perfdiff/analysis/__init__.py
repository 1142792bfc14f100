"""From sample tables and exact sums to findings: what got slower, by how much, for which inputs, and why.

What analyses is loaded when it is asked for: who only reads findings would wait for it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfdiff.analysis.analysis import analyse
    from perfdiff.analysis.looks import glance, look

__all__ = ["analyse", "glance", "look"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from perfdiff.analysis import analysis, looks

    return getattr(analysis if name == "analyse" else looks, name)
