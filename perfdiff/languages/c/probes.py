"""Probes as text: a macro behind the `{` of a body, one around each watched condition, and the header that defines them.

See `docs/architecture/probes.md`, "The probe's text".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from perfdiff.errors import StoreError
from perfdiff.languages.protocol import MacroBody, Probe

HEADER = ".perfdiff/probes.h"
_MADE = ".perfdiff/made"  # what `perfdiff.build.made` reads

# Assembler that is compiled in one call with C is preprocessed as well.
_PREAMBLE = """\
#if !defined PERFDIFF_PROBES_H && !defined __ASSEMBLER__
#define PERFDIFF_PROBES_H
#pragma GCC system_header
#ifndef PD_NONE
#include "perfdiff_probe.h"
#endif
"""
_MARK = re.compile(rb"\bPD_(\d+)\b")
_CLOSING, _BODY, _OPENING = range(3)  # the order of insertions at one place


class _Insertion(NamedTuple):
    """Text to insert at a byte offset. Insertions sort as they follow each other: conditions nest, the longer one outside."""

    offset: int
    order: int
    nesting: int
    text: bytes


def insert(tree: Path, probes: Sequence[Probe], plain_tree: Path | None = None) -> Path:
    """Write the probes into the sources of `tree`; return the header to be included ahead of every translation unit.

    Lines keep their numbers and all other bytes their values. Sources that `plain_tree`, a tree built without probes, has and `tree` has
    not, or not so, are made during the build: their texts with probes are laid aside, and take their places as they are compiled. A file
    that neither tree has as it was indexed gets no probes. StoreError where the tree cannot be written.
    """
    by_file: dict[str, list[Probe]] = {}
    for probe in probes:
        by_file.setdefault(_place(probe).file, []).append(probe)
    header = tree / HEADER
    try:
        for file, inside in by_file.items():
            given = _text(tree / file)
            built = given if plain_tree is None else _text(plain_tree / file).replace(_path(plain_tree), _path(tree))
            if given:
                _write(tree / file, _with_probes(given, inside))
            if given != built:
                _write(tree / _MADE / f"{file}.plain", built)
                _write(tree / _MADE / f"{file}.probed", _with_probes(built, inside))
        header.parent.mkdir(exist_ok=True)
        header.write_text("".join((_PREAMBLE, *_all_definitions(probes), "#endif\n")), encoding="utf-8")
    except OSError as error:
        raise StoreError.about(tree, error) from error
    return header


def carried(tree: Path, probes: Sequence[Probe]) -> frozenset[int]:
    """Return the numbers of those `probes` that stand in the sources of a built tree: a source that the build wrote anew has none."""
    numbers: set[int] = set()
    for file in {_place(probe).file for probe in probes}:
        if (tree / file).is_file():
            numbers |= {int(number) for number in _MARK.findall((tree / file).read_bytes())}
    return frozenset(numbers & {probe.id for probe in probes})


def _text(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _path(tree: Path) -> bytes:
    return os.fsencode(tree.resolve())


def _write(path: Path, text: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def _with_probes(source: bytes, probes: Sequence[Probe]) -> bytes:
    """Return a source with the probes of functions that stand in it as they were indexed."""
    pieces, end = [], 0
    for insertion in sorted(insertion for probe in probes if _is_as_indexed(source, probe) for insertion in _insertions(probe, source)):
        pieces += [source[end : insertion.offset], insertion.text]
        end = insertion.offset
    return b"".join((*pieces, source[end:]))


def _place(probe: Probe) -> MacroBody:
    """Return where the body of a probe's function begins: in its own text, or in that of the macro that makes it."""
    return probe.definition.made or MacroBody(probe.definition.file, probe.definition.body)


def _is_as_indexed(source: bytes, probe: Probe) -> bool:
    definition, body = probe.definition, _place(probe).offset
    is_closed = definition.made is not None or source[definition.end - 1 : definition.end] == b"}"
    return source[body - 1 : body] == b"{" and is_closed


def _insertions(probe: Probe, source: bytes) -> Iterator[_Insertion]:
    body = _place(probe).offset
    gap = b"" if source[body : body + 1].isspace() and not probe.definition.made else b" "
    yield _Insertion(body, _BODY, 0, b"PD_%d%s" % (probe.id, gap))
    for number, index in enumerate(probe.branches):
        branch = probe.definition.branches[index]
        before = source[branch.start - 1 : branch.start]
        gap = b" " if before.isalnum() or before in (b"_", b"$") or before >= b"\x80" else b""  # else it would go on with a word
        yield _Insertion(branch.start, _OPENING, -branch.end, b"%sPD_B_%d_%d (" % (gap, probe.id, number))
        yield _Insertion(branch.end, _CLOSING, -branch.start, b") ? 1 : 0)")


def _all_definitions(probes: Sequence[Probe]) -> Iterator[str]:
    """Yield the macros of all probes. Of those whose functions one text in a macro makes, the first stands for all."""
    groups: dict[MacroBody, list[Probe]] = {}
    for probe in probes:
        if probe.definition.made is None:
            yield _definitions(probe)
        else:
            groups.setdefault(probe.definition.made, []).append(probe)
    for group in groups.values():
        yield _definition_by_name(sorted(group, key=lambda probe: probe.id))


def _definition_by_name(probes: Sequence[Probe]) -> str:
    """Return the macros of probes in one text, of which each is that of a function's name, and none that of other functions.

    Compilers know the name, and leave nothing of the choice from the first level of optimisation on.
    """
    first, *others = (probe.id for probe in probes)
    number = "".join(f'!__builtin_strcmp(__func__, "{probe.definition.name}") ? {probe.id}u : ' for probe in probes) + "~0u"
    readers = [f"(pd_frame_.probe == {probe.id} ? ({', '.join((*_readers(probe), '0'))}) : 0)" for probe in probes if probe.features]
    return "".join(f"#define PD_{other}\n" for other in others) + _macros(first, number, readers)


def _definitions(probe: Probe) -> str:
    """Return the macros of a probe: its own, then those of its conditions."""
    conditions = {
        f"PD_B_{probe.id}_{place}": f"pd_branch(&pd_frame_, {len(probe.features)}, {place}," for place in range(len(probe.branches))
    }
    return _macros(probe.id, str(probe.id), _readers(probe), conditions)


def _readers(probe: Probe) -> list[str]:
    """Return the calls that read the features of a probe, each into its cell."""
    return [probe.definition.features[index].expression.replace("{cell}", str(cell)) for cell, index in enumerate(probe.features)]


def _macros(place: int, number: str, readers: Sequence[str], conditions: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the macro that stands behind a body's `{`, and those of conditions; without effect where the compiler cannot take it.

    `number` is the probe's as an expression. Attributes are spelled with underscores, as programs have macros of their own called `unused`
    or `cleanup`.
    """
    return "\n".join(
        (
            f"#if defined PD_NONE || defined PD_NO_{place}",
            f"#define PD_{place}",
            *(f"#define {name} (" for name in conditions),
            "#else",
            f"#define PD_{place} PD_FRAME({number}); \\",
            f"  int pd_probe_ __attribute__((__unused__)) = pd_entered(PD_ENTER({number}) ? \\",
            f"    ({', '.join((*readers, 'pd_start(&pd_frame_)'))}) : 0);",
            *(f"#define {name} {text}" for name, text in conditions.items()),
            "#endif\n",
        )
    )
