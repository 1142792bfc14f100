"""Which closure or anonymous class of base is which of head, so that another number makes no other function."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfdiff.languages.numbering import Alignment, Number, Tokens, rekeyed, with_name
from perfdiff.languages.protocol import FunctionDefinition, Program

# What has a number by its order among its like within a function; the first has none.
_UNIT = re.compile(r"::(?:\{closure\}|class@anonymous)(?:#(?P<number>\d+))?(?=::|$)")


def aligned(base: Program, head: Program, tokens: Tokens) -> tuple[Program, Mapping[str, FunctionDefinition]]:
    """Return head with its functions renumbered by base's keys, and by these keys the functions as head had them."""
    keys = dict(Alignment(_number, tokens).keys(list(base.functions.values()), list(head.functions.values())))
    return rekeyed(head, keys, lambda function, key: with_name(function, base.functions.get(key)))


def _number(key: str, start: int) -> Number | None:
    """Return where the first number stands in a key."""
    match = _UNIT.search(key, start)
    return Number.matched(match, "number") if match else None
