"""Whether a plain build can be repeated by its recorded steps alone, in a copy of its tree, without the user's command."""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build import userhome
from perfdiff.build.links import is_same
from perfdiff.build.steps import BuildStep, read_steps

NAME = "recipe.json"  # of what is found, in the folder of the build's records
# Options by which a compiler reads or writes more than its sources, and an object beside: what would come of another call is not known.
_MORE = re.compile(
    r"-fmodule|-fprebuilt-module|-?-save-temps|-gsplit-dwarf|-fplugin|-fprofile-|-fauto-profile|-fbranch-prob|-ftest-coverage"
    r"|-?-coverage|-fcoverage|-include-pch|-fpch|-fembed-bitcode|-fthin|-emit|-gz|-fdump|-wrapper|-foffload"
)
_OF_BUILD_SYSTEMS = frozenset((".git", "CMakeFiles", "meson-private", "meson-info"))  # folders with programs that these made for themselves
_ELF, _ARCHIVE, _THIN = b"\x7fELF", b"!<arch>\n", b"!<thin>\n"
# The magic number of ELF, as texts have it that scripts make of programs: hexadecimal, decimal, octal, or in base 64.
_ELF_IN_TEXT = re.compile(
    rb"(?i:0x7f,\s*0x45,\s*0x4c,\s*0x46|\\x7f\\x45\\x4c\\x46|\\x7fELF|7f ?45 ?4c ?46)"
    rb"|127,\s*69,\s*76,\s*70|\\177(?:ELF|\\105\\114\\106)|f0VMR"
)
_PACKED = (
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf",
    b"\x04\x22\x4d\x18",
    b"BC\xc0\xde",
    b"\0asm",
)
_NINJA = ".ninja_log"  # knows commands by digests, which are others where they name another tree
_NINJA_FILES = ("build.ninja", "CMakeFiles/rules.ninja")
_BLOCK = re.compile(r"\n(?=\S)")
_TICK_NS = 20_000_000  # the kernel's clock of files is behind by one of its ticks, of 1 to 10 ms


class UnrepeatableError(Exception):
    """A build cannot be repeated by its steps, with the reason."""


@dataclass(frozen=True, slots=True)
class BuildRecipe:
    """The steps that make all that was compiled and linked in a tree, in the order in which they began.

    `copies` are the places where the build has put an output, by the output, which may be gone from its own. `obstacles` says by the names
    of their records why some steps cannot be repeated.
    """

    steps: tuple[BuildStep, ...]
    copies: Mapping[Path, tuple[Path, ...]]
    obstacles: Mapping[str, str]

    def places(self, step: BuildStep) -> tuple[Path, ...]:
        """Return where the output of a step lies: its own place, and its copies."""
        return (step.output, *self.copies.get(step.output, ()))

    def needed(self, tree: Path, used: Collection[str]) -> tuple[BuildStep, ...]:
        """Return the steps that make files of a tree which are `used`, by their names in it, or what these are made of; all for none.

        A step is left out only if it links something that is not used, or if all takers of its output that were seen are left out: where
        nothing is seen to take it, it stays. Raise UnrepeatableError where one that stays cannot be repeated.
        """
        steps = self._needed({tree / name for name in used})
        if obstacle := next((self.obstacles[step.record] for step in steps if step.record in self.obstacles), None):
            raise UnrepeatableError(obstacle)
        return steps

    def _needed(self, places: Set[Path]) -> tuple[BuildStep, ...]:
        if places.isdisjoint(path for step in self.steps for path in self.places(step)):
            return self.steps
        is_needed, later = dict[str, bool](), list[tuple[BuildStep, frozenset[Path]]]()
        for step in reversed(self.steps):  # whoever takes an output began after it
            own = self.places(step)
            takers = [is_needed[taker.record] for taker, inputs in later if _takes(taker, inputs, step, own)]
            is_needed[step.record] = not places.isdisjoint(own) or any(takers) or not (takers or step.is_link)
            if not step.is_compile:
                later.append((step, frozenset(step.inputs)))
        return tuple(step for step in self.steps if is_needed[step.record])


def write_recipe(build: Path, tree: Path) -> None:
    """Write down how a plain build that has just ended can be repeated, or why it cannot; raise OSError."""
    try:
        recipe = _recipe(build, tree)
    except UnrepeatableError as error:
        content: dict[str, object] = {"obstacle": str(error)}
    else:
        copies = {str(output): [str(copy) for copy in copies] for output, copies in recipe.copies.items()}
        content = {"steps": [step.record for step in recipe.steps], "copies": copies, "obstacles": recipe.obstacles}
    (build / NAME).write_text(json.dumps(content), encoding="utf-8")


def read_recipe(build: Path, *, moved: tuple[str, str] = ("", "")) -> BuildRecipe:
    """Return how a plain build can be repeated, as `read_steps`; raise UnrepeatableError where it cannot."""
    try:
        text = (build / NAME).read_text(encoding="utf-8")
        content = json.loads(text.replace(*moved) if moved[0] else text)
        if "obstacle" in content:
            raise UnrepeatableError(content["obstacle"])
        by_record = {step.record: step for step in read_steps(build, moved=moved)}
        copies = {Path(output): tuple(map(Path, copies)) for output, copies in content["copies"].items()}
        return BuildRecipe(tuple(by_record[record] for record in content["steps"]), copies, content["obstacles"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnrepeatableError(f"what was recorded of the plain build cannot be read: {error}") from error


def _recipe(build: Path, tree: Path) -> BuildRecipe:
    if not userhome.is_untouched(build.parent):
        raise UnrepeatableError("the build has put files into its home")
    began_ns = (build / "environment").stat().st_mtime_ns
    ending = _Ending(tree, read_steps(build), _files(tree), began_ns)
    ending.check_kinds()
    steps = ending.steps_that_matter()
    if not any(step.files or step.is_compile for step in steps):
        raise UnrepeatableError("no compile that makes something in the tree was seen")
    first_ns = min(step.started_ns for step in ending.steps if step.files or step.is_compile)
    copies = ending.copies(steps, first_ns - _TICK_NS)
    steps = [step for step in steps if step.output in ending.files or step.output in copies]
    ending.check(steps)
    ending.check_looks(build / "looks", steps)
    ending.check_names()
    obstacles = {step.record: obstacle for step in steps if (obstacle := _obstacle(step))}
    return BuildRecipe(tuple(sorted(steps, key=lambda step: step.started_ns)), copies, obstacles)


@dataclass(frozen=True, slots=True)
class _Ending:
    """A tree at the end of its build, and all steps that were seen; what the build found there is older than `began_ns`."""

    tree: Path
    steps: Sequence[BuildStep]
    files: Mapping[Path, os.stat_result]
    began_ns: int

    def check_kinds(self) -> None:
        """Raise UnrepeatableError where a step of the tree's sources makes something else than one object, archive or program."""
        for step in self.steps:
            name = step.output.name
            if not any(path.is_relative_to(self.tree) for path in step.inputs):
                continue
            if step.is_header:
                raise UnrepeatableError(f"{name} is a precompiled header")
            if step.is_assembler:
                raise UnrepeatableError(f"{step.inputs[0].name} was compiled to assembler text")
            if step.is_compile and len(step.inputs) > 1:
                raise UnrepeatableError(f"{step.inputs[0].name} was compiled in one call with others")

    def steps_that_matter(self) -> list[BuildStep]:
        """Return the last steps to write each output, in the order in which they were recorded; raise UnrepeatableError."""
        by_output: dict[Path, list[BuildStep]] = {}
        for step in self.steps:
            by_output.setdefault(step.output, []).append(step)
        last: list[BuildStep] = []
        for output, steps in by_output.items():
            if not output.is_relative_to(self.tree):
                if steps[-1].is_link and output.exists():
                    raise UnrepeatableError(f"{output.name} was linked outside of its tree")
                continue
            if output in self.files and not is_same(output, steps[-1].size, steps[-1].digest):
                raise UnrepeatableError(f"{output.name} was changed after it was made (stripped, or given another rpath)")
            is_kept = output in self.files or steps[-1].is_archive
            last += _from_its_beginning(steps) if is_kept else steps[-1:]  # what a configuration tries again and again is gone
        return last

    def copies(self, steps: Sequence[BuildStep], first_ns: int) -> dict[Path, tuple[Path, ...]]:
        """Return where outputs were copied or moved to; raise UnrepeatableError where something else may hold code that was compiled.

        What is older than the first compile holds none.
        """
        last = {step.output: step for step in steps}
        by_size: dict[int, list[BuildStep]] = {}
        for step in last.values():
            by_size.setdefault(step.size, []).append(step)
        copies: dict[Path, list[Path]] = {}
        for path, status in self.files.items():
            if path in last or status.st_ctime_ns < max(first_ns, self.began_ns) or not stat.S_ISREG(status.st_mode):
                continue
            if not _OF_BUILD_SYSTEMS.isdisjoint(path.relative_to(self.tree).parts) and not by_size.get(status.st_size):
                continue
            content = path.read_bytes()
            digest = zlib.crc32(content)
            alike = [step for step in by_size.get(len(content), ()) if step.digest == digest]
            if len(alike) > 1:
                raise UnrepeatableError(f"{path.name} is a copy of {alike[0].output.name} or of {alike[1].output.name}")
            if alike:
                copies.setdefault(alike[0].output, []).append(path)
            elif _may_hold_code(content):
                raise UnrepeatableError(f"{path.name} was made by a tool that was not seen")
        return {output: tuple(places) for output, places in copies.items()}

    def check(self, steps: Collection[BuildStep]) -> None:
        """Raise UnrepeatableError where a step would not do now what it did."""
        last = {step.output: step for step in steps}
        seen = {step.output for step in self.steps}
        for step in steps:
            name = step.output.name
            if not step.directory.is_dir():
                raise UnrepeatableError(f"{name} was made in a folder that is gone")
            for path in (*step.inputs, *(self.tree / file for file in step.files)):
                self._check_input(step, path, last.get(path), is_made=path in seen)

    def _check_input(self, step: BuildStep, path: Path, maker: BuildStep | None, *, is_made: bool) -> None:
        name = step.output.name
        if maker is None and is_made:
            raise UnrepeatableError(f"{name} was made of {path.name}, which is gone or lies outside of the tree")
        if maker is None and not path.is_relative_to(self.tree):
            return
        if path not in self.files:
            if maker is not None or (path.is_absolute() and not path.exists() and path.suffix):
                raise UnrepeatableError(f"{name} was made of {path.name}, which is gone")
            return
        if maker is not None and maker.output != step.output and maker.ended_ns > step.started_ns:
            raise UnrepeatableError(f"{path.name} was written again after {name} was made of it")
        if maker is None and self.files[path].st_ctime_ns > max(self.began_ns, step.started_ns):
            raise UnrepeatableError(f"{path.name} was written again after {name} was made of it")

    def check_looks(self, looks: Path, steps: Collection[BuildStep]) -> None:
        """Raise UnrepeatableError where a tool has read an output, as what it found there may have gone elsewhere."""
        outputs = {step.output for step in steps}
        for file in looks.iterdir():
            directory = self.tree
            for line in file.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
                if line.startswith("in /"):
                    directory = Path(line[3:])
                elif (path := Path(os.path.realpath(directory / line))) in outputs:
                    raise UnrepeatableError(f"{file.name.rpartition('-')[0]} was asked about {path.name}")

    def check_names(self) -> None:
        """Raise UnrepeatableError where names of files, or digests, hold where the tree lies."""
        own = self.tree.parent.name
        for path in self.files:
            name = path.relative_to(self.tree)
            if own in str(name):
                raise UnrepeatableError(f"a file is named after the tree: {name.name}")
            if path.name == _NINJA and _is_in_commands(own, path):
                raise UnrepeatableError("ninja knows commands, which name the tree, by digests")


def _obstacle(step: BuildStep) -> str | None:
    """Return why a step that makes one file need not make the same again, None where it does."""
    if odd := next((word for word in step.arguments if _MORE.match(word)), None):
        return f"{step.output.name} was made with {odd}"
    return f"the sources of {step.output.name} embed files, or use modules" if step.reads_more else None


def _takes(step: BuildStep, inputs: Set[Path], maker: BuildStep, places: Sequence[Path]) -> bool:
    """Return whether a step of these inputs may take what the `maker` made, which lies at these places: a word of it may mean a library."""
    if step.output == maker.output or not inputs.isdisjoint(places):
        return step.output != maker.output
    if maker.is_compile:
        return False
    names = [path.name for path in places]
    return any(
        word.startswith("@") or (word.startswith("-l") and name.startswith(f"lib{word[2:]}.")) or name in word
        for word in step.arguments
        for name in names
    )


def _from_its_beginning(steps: Sequence[BuildStep]) -> Sequence[BuildStep]:
    """Return the steps that made an output what it is at last: of an archive those since it was begun. Raise UnrepeatableError."""
    name = steps[-1].output.name
    if steps[-1].is_archive:
        begin = next((at for at in reversed(range(len(steps))) if not steps[at].existed), None)
        if begin is None or not all(step.is_archive for step in steps[begin:]):
            raise UnrepeatableError(f"{name} was begun by a tool that was not seen")
        return steps[begin:]
    if any(step.command != steps[-1].command for step in steps):
        raise UnrepeatableError(f"{name} was made twice, and not in the same way")
    return steps[-1:]


def _files(tree: Path) -> dict[Path, os.stat_result]:
    """Return what lies in a tree but folders, and git's own files."""
    return {path: path.lstat() for path in _walk(tree)}


def _walk(tree: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(tree):
        if ".git" in folders:
            folders.remove(".git")
        yield from (Path(place, name) for name in names)
        yield from (Path(place, name) for name in folders if Path(place, name).is_symlink())


def _is_in_commands(own: str, log: Path) -> bool:
    """Return whether commands of the outputs in ninja's log hold a word; those by which ninja's own file is made do not count."""
    text = "".join(_text(log.parent / name) for name in _NINJA_FILES)
    logged = {fields[3] for line in _text(log).splitlines() if len(fields := line.split("\t")) == 5}
    blocks = [block for block in _BLOCK.split(text) if block.startswith(("rule ", "build ")) and "generator = 1" not in block]
    rules = {block.split()[1] for block in blocks if block.startswith("rule ") and own in block}
    for block in blocks:
        outputs, _, rest = block.removeprefix("build ").partition(":")
        is_named = own in block or (rest.split() or [""])[0] in rules
        if block.startswith("build ") and is_named and not logged.isdisjoint(outputs.split()) and "build.ninja" not in outputs.split():
            return True
    return False


def _may_hold_code(content: bytes) -> bool:
    """Return whether a file may hold what was compiled, as itself, packed or as a text."""
    if content.startswith(_PACKED) or any(mark in content for mark in (_ELF, _ARCHIVE, _THIN)):
        return True
    return _ELF_IN_TEXT.search(content) is not None


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else ""
