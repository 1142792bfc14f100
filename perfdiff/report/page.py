"""Common parts of HTML pages: templates with filters, inline style and script, and a policy that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from perfdiff import units
from perfdiff.report.blocks import Table
from perfdiff.report.chart import chart, ratio_scale, ratios, residuals, scopes
from perfdiff.report.plotdata import plot_data
from perfdiff.report.printable import quoted_parts

if TYPE_CHECKING:
    from jinja2 import Environment


_MOST_WHOLE = 20  # characters: no word of the reports' own has more


def environment(**filters: Callable[..., Any]) -> Environment:
    """Return the templates, with the filters that plots and sentences need and those given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("perfdiff.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    templates.filters.update(
        chart=chart,
        residuals=residuals,
        scopes=scopes,
        one=lambda plot: round(ratio_scale(ratios(plot))(1.0), 1),
        data=plot_data,
        count=units.count,
        parts=quoted_parts,
        long=long,
        **filters,
    )
    return templates


def long(table: Table) -> frozenset[int]:
    """Return the columns that hold names of any length, which may be broken anywhere; words of others stay whole."""
    words = ((place, word) for row in table.rows for place, cell in enumerate(row) for word in cell.text.split())
    return frozenset(place for place, word in words if len(word) > _MOST_WHOLE)


def asset(name: str) -> str:
    """Return the text of a style or script that lies beside the templates."""
    return files("perfdiff.report").joinpath("templates", name).read_text(encoding="utf-8")


def policy(style: str, script: str) -> str:
    """Return a content security policy by which nothing but this style and this script acts, whatever a program's names contain."""
    rules = ("default-src 'none'", f"style-src {_source(style)}", f"script-src {_source(script)}", "base-uri 'none'", "form-action 'none'")
    return "; ".join(rules)


def _source(text: str) -> str:
    """Return how a policy names an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
