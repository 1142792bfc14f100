"""Which lambda, anonymous class or overload of base is which of head, so that another number or parameter makes no other function."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from perfdiff.languages.java.renaming import class_of, renamed_classes
from perfdiff.languages.numbering import Alignment, Number, Tokens, rekeyed, with_name
from perfdiff.languages.protocol import FunctionDefinition, Program

PREFIX = "java:"
Functions = Mapping[str, FunctionDefinition]

# What has a number by its order among its like: lambdas, anonymous classes of one parent, local classes of one name. The first of the
# last two has none.
_UNIT = re.compile(
    r"""
      (?: \.lambda (?P<lambda>\d+)
        | (?: \.new[ ] [\w$.]*? [\w$] | (?<=\)) \. (?!lambda\d) [A-Za-z_$][\w$]* ) (?: \# (?P<class>\d+) )?
      ) (?= \. | $ | [ ]\( )
    """,
    re.VERBOSE,
)
_PARAMETERS = re.compile(r"\([^()]*\)(?=$| \()")


def aligned(base: Program, head: Program, tokens: Tokens) -> tuple[Program, Functions]:
    """Return head with its functions renumbered by base's keys, and by these keys the functions as head had them."""
    classes = renamed_classes(base.functions, head.functions)
    keys = _keys(base.functions, head.functions, classes, tokens)
    return rekeyed(
        head, keys, lambda function, key: function if class_of(function) in classes else with_name(function, base.functions.get(key))
    )


def _keys(base: Functions, head: Functions, classes: Mapping[str, str], tokens: Tokens) -> dict[str, str]:
    """Return the key in base of each function of head, a new one where it has no counterpart."""
    keys = {key: key for key in head}
    for key, function in head.items():
        if (now := classes.get(class_of(function))) is not None:
            keys[key] = f"{PREFIX}{now}{key.removeprefix(PREFIX).removeprefix(class_of(function))}"
    moved = {now: replace(head[key], key=now) for key, now in keys.items()}
    others = _overloads(base, moved)
    prefixed = {f"{key}.": f"{now}." for key, now in others.items()}
    renamed = {key: others.get(now) or _with_prefix(now, prefixed) for key, now in keys.items()}
    moved = {now: replace(head[key], key=now) for key, now in renamed.items()}
    base_keys = dict(Alignment(_number, tokens).keys(list(base.values()), list(moved.values())))
    return {key: base_keys[now] for key, now in renamed.items()}


def _with_prefix(key: str, prefixes: Mapping[str, str]) -> str:
    at = key.find(").")
    while at >= 0:
        if (now := prefixes.get(key[: at + 2])) is not None:
            return now + key[at + 2 :]
        at = key.find(").", at + 1)
    return key


def _overloads(base: Functions, head: Functions) -> dict[str, str]:
    """Return the keys in base of methods whose parameters are others: of a name the one method that is left on either side."""
    gone, new = _by_stem(base.keys() - head.keys()), _by_stem(head.keys() - base.keys())
    return {new[stem][0]: gone[stem][0] for stem in gone.keys() & new.keys() if len(gone[stem]) == len(new[stem]) == 1}


def _by_stem(keys: Iterable[str]) -> dict[str, list[str]]:
    keys_by_stem: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        if _PARAMETERS.search(key) and not _UNIT.search(key):
            keys_by_stem[_PARAMETERS.sub("", key, count=1)].append(key)
    return keys_by_stem


def _number(key: str, start: int) -> Number | None:
    """Return where the first number of a lambda or class stands in a key."""
    match = _UNIT.search(key, start)
    return Number.matched(match, "lambda" if match["lambda"] else "class") if match else None
