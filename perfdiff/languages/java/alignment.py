"""Which lambda, anonymous class or overload of base is which of head, so that another number or parameter makes no other function."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from perfdiff.languages.digest import digest
from perfdiff.languages.java.renaming import class_of, renamed_classes
from perfdiff.languages.protocol import FunctionDefinition, Program

PREFIX = "java:"
Tokens = Callable[[FunctionDefinition], Sequence[str]]
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
_ALIKE = 0.5  # share of tokens that two lambdas must have in common where their order does not tell which is which


@dataclass(frozen=True, slots=True)
class _Unit:
    """A lambda or class: what its keys begin with, its number, and its functions."""

    prefix: str
    number: int
    functions: tuple[FunctionDefinition, ...]

    @property
    def digest(self) -> str:
        """Return a digest of what it does."""
        return digest(sorted(f"{one.key[len(self.prefix) :]} {one.tokens}" for one in self.functions))


def aligned(base: Program, head: Program, tokens: Tokens) -> tuple[Program, Functions]:
    """Return head with the keys that its functions have in base, and its functions as they were by these keys."""
    classes = renamed_classes(base.functions, head.functions)
    keys = _keys(base.functions, head.functions, classes, tokens)
    if all(key == now for key, now in keys.items()) or len(set(keys.values())) < len(keys):
        return head, head.functions
    functions = {}
    for key, now in keys.items():
        one = replace(head.functions[key], key=now, calls=frozenset(keys.get(each, each) for each in head.functions[key].calls))
        functions[now] = one if class_of(one) in classes else _with_name(one, base.functions.get(now))
    return replace(head, functions=functions), {now: head.functions[key] for key, now in keys.items()}


def _with_name(function: FunctionDefinition, before: FunctionDefinition | None) -> FunctionDefinition:
    """Return a function to which its name in base is one of its own: another number or parameter is no other name."""
    known = before is None or before.name in function.names
    return function if known or before is None else replace(function, names=(*function.names, before.name))


def _keys(base: Functions, head: Functions, classes: Mapping[str, str], tokens: Tokens) -> dict[str, str]:
    """Return the key in base of each function of head, a new one where it has no counterpart."""
    keys = {key: key for key in head}
    for key, one in head.items():
        if (now := classes.get(class_of(one))) is not None:
            keys[key] = f"{PREFIX}{now}{key.removeprefix(PREFIX).removeprefix(class_of(one))}"
    moved = {now: replace(head[key], key=now) for key, now in keys.items()}
    others = _overloads(base, moved)
    prefixed = {f"{key}.": f"{now}." for key, now in others.items()}
    renamed = {key: others.get(now) or _with_prefix(now, prefixed) for key, now in keys.items()}
    moved = {now: replace(head[key], key=now) for key, now in renamed.items()}
    found = dict(_aligned(list(base.values()), list(moved.values()), "", "", tokens))
    return {key: found[now] for key, now in renamed.items()}


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
    found: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        if _PARAMETERS.search(key) and not _UNIT.search(key):
            found[_PARAMETERS.sub("", key, count=1)].append(key)
    return found


def _aligned(
    base: Sequence[FunctionDefinition], head: Sequence[FunctionDefinition], before: str, after: str, tokens: Tokens
) -> Iterator[tuple[str, str]]:
    """Yield the keys of head and those that they have in base, of functions whose keys begin with `before` and `after` there."""
    first, second = _units(base, before), _units(head, after)
    for one in head:
        if _UNIT.search(one.key, len(after)) is None:
            yield one.key, before + one.key[len(after) :]
    for stem, units in second.items():
        others = first.get(stem, [])
        pairs = _pairs(others, units, tokens)
        free = iter(range(max((each.number for each in (*others, *units)), default=0) + 1, 1 << 30))
        for index, unit in enumerate(units):
            if index in pairs:
                other = others[pairs[index]]
                yield from _aligned(other.functions, unit.functions, other.prefix, unit.prefix, tokens)
            else:
                prefix = f"{before}{stem}{next(free)}"
                yield from ((one.key, prefix + one.key[len(unit.prefix) :]) for one in unit.functions)


def _units(functions: Iterable[FunctionDefinition], under: str) -> dict[str, list[_Unit]]:
    """Return what has a number and begins directly under a prefix, by what stands before the number, in order."""
    groups: dict[str, dict[tuple[int, str], list[FunctionDefinition]]] = defaultdict(lambda: defaultdict(list))
    for one in functions:
        found = _UNIT.search(one.key, len(under))
        if found is not None:
            kind = "lambda" if found["lambda"] else "class"
            number = int(found[kind] or 1)
            end = found.start(kind) if found[kind] else found.end()
            stem = one.key[len(under) : end] + ("" if kind == "lambda" or found[kind] else "#")
            groups[stem][number, one.key[: found.end()]].append(one)
    return {
        stem: [_Unit(prefix, number, tuple(group)) for (number, prefix), group in sorted(units.items())] for stem, units in groups.items()
    }


def _pairs(base: Sequence[_Unit], head: Sequence[_Unit], tokens: Tokens) -> dict[int, int]:
    """Return by index in head which unit of base is the same: those that do the same in the same order, then what is left between."""
    before, after = [one.digest for one in base], [one.digest for one in head]
    found: dict[int, int] = {}
    gap = (0, 0)
    for start, other, size in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        found |= _between(base, head, (gap[0], start), (gap[1], other), tokens)
        found |= {other + step: start + step for step in range(size)}
        gap = start + size, other + size
    return found


def _between(base: Sequence[_Unit], head: Sequence[_Unit], old: tuple[int, int], new: tuple[int, int], tokens: Tokens) -> dict[int, int]:
    if old[1] - old[0] == new[1] - new[0]:
        return dict(zip(range(*new), range(*old), strict=True))
    words = {("base", index): _words(base[index], tokens) for index in range(*old)}
    words |= {("head", index): _words(head[index], tokens) for index in range(*new)}
    scored = sorted(((_likeness(words["base", i], words["head", j]), -i, -j) for i in range(*old) for j in range(*new)), reverse=True)
    found: dict[int, int] = {}
    for score, i, j in scored:
        if score >= _ALIKE and -j not in found and -i not in found.values():
            found[-j] = -i
    return found


def _words(unit: _Unit, tokens: Tokens) -> Counter[str]:
    return Counter(token for one in unit.functions for token in tokens(one))


def _likeness(base: Counter[str], head: Counter[str]) -> float:
    """Return Dice's coefficient of two multisets, 0 to 1."""
    return 2 * (base & head).total() / max(base.total() + head.total(), 1)
