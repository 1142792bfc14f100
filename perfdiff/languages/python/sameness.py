"""What base and head have in common as the interpreter gets it: byte code, in which only positions may differ."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from perfdiff.languages.protocol import CodeComparison, Counterpart
from perfdiff.languages.tree_files import regular

_COMPARING = Path(__file__).parent / "scripts" / "compared_code.py"
_TIMEOUT_S = 60.0  # 300 modules of 60 functions take a second on a busy machine
_BYTE_CODE, _SOURCE, _FOLDER = ".pyc", ".py", "__pycache__"

Place = tuple[str, int, int]  # of a function: the interpreter's name for it, its first line in base and in head


def same_code(pairs: Sequence[Counterpart], differing: Mapping[str, Mapping[int, Path]], python: Path) -> CodeComparison:
    """Compare the byte code of two builds, whose functions are `pairs`, by the interpreter `python`, which runs both.

    What is imported is byte code, which a run opens in its source's place: a module whose source a run opens is one that it reads.
    """
    files = regular(differing)
    functions_by_file = _compared({name: places for name, places in files.items() if name.endswith(_BYTE_CODE)}, python)
    alike = frozenset(name for name, functions in functions_by_file.items() if not functions)
    return CodeComparison(
        alike=alike,
        by_function=frozenset(
            name for name, functions in functions_by_file.items() if name not in alike and _are_told(_source(name), functions, pairs)
        ),
        compiled=frozenset(name for name, places in files.items() if name.endswith(_SOURCE) and all(map(_is_compiled, places))),
    )


def _compared(files: Mapping[str, tuple[Path, Path]], python: Path) -> dict[str, list[Place]]:
    """Return the functions in which files differ, of those that differ in nothing else; nothing where the interpreter does not tell."""
    if not files:
        return {}
    command = [str(python), "-I", "-S", str(_COMPARING)]  # without what an environment would run at its start
    asked = json.dumps([[name, *map(str, places)] for name, places in files.items()])
    try:
        ended = subprocess.run(command, input=asked, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S)
        functions_by_file = json.loads(ended.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
    return {name: list(map(tuple, functions)) for name, functions in functions_by_file.items() if functions is not None}


def _are_told(source: str, functions: Iterable[Place], pairs: Sequence[Counterpart]) -> bool:
    """Return whether all functions of a source that differ are suspects on both sides."""
    suspects, others = set[Place](), set[Place]()
    for pair in pairs:
        if pair.base is not None and pair.head is not None and pair.base.file == pair.head.file == source:
            (suspects if pair.change.is_suspect else others).update(_places(pair.base.linkage, pair.head.linkage))
    return suspects.difference(others).issuperset(functions)


def _places(base: Iterable[str], head: Iterable[str]) -> Iterator[Place]:
    for before, after in zip(base, head, strict=False):
        (line, _, name), (line_in_head, _, name_in_head) = before.partition(" "), after.partition(" ")
        if name == name_in_head:
            yield name, int(line), int(line_in_head)


def _source(byte_code: str) -> str:
    """Return the source that a file of byte code was made of."""
    path = PurePosixPath(byte_code)
    folder = path.parent.parent if path.parent.name == _FOLDER else path.parent
    return (folder / f"{path.name.partition('.')[0]}{_SOURCE}").as_posix()


def _is_compiled(source: Path) -> bool:
    """Return whether byte code of a source lies where interpreters look for it."""
    return any((source.parent / _FOLDER).glob(f"{source.stem}.*{_BYTE_CODE}"))
