"""Common parts of matplotlib pictures: style, colours, axes with units, and the same bytes for the same figure."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from perfdiff import units

# The colours of Okabe and Ito, which people with any colour vision can tell apart, less yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_METADATA: dict[str, dict[str, None]] = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}
_DOTS_AN_INCH = 150


@contextmanager
def style() -> Iterator[None]:
    """Have figures drawn and saved in one style for the length of a `with` block."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "perfdiff", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        yield


def saved(figure: Any, kind: str) -> bytes:
    """Return a matplotlib figure as a picture of `kind` `svg` or `png`; the same bytes each time."""
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, metadata=_METADATA[kind], dpi=_DOTS_AN_INCH)
    return picture.getvalue()


def ticks(axis: Any, unit: str) -> None:
    """Write the axis's values as people write quantities."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: units.quantity(value, unit)))
    if axis.get_scale() == "log":
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(5))
