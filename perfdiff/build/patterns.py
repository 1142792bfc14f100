"""What layouts of a build are made from: its links, and what may come in another order in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build import archives, objectfiles
from perfdiff.build.files import files
from perfdiff.build.linker import Linker
from perfdiff.build.links import RecordedLink, apart, compile_words, is_same


@dataclass(frozen=True, slots=True)
class LinkPattern:
    """A link, the places of all object files among its arguments, and groups of those that may change places with each other."""

    link: RecordedLink
    objects: tuple[int, ...]
    exchangeable: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Links that can be done again, the `archives` whose members may come in any order, and `copies`, by the output of a link: further
    files that are the same.
    """

    links: tuple[LinkPattern, ...]
    archives: tuple[Path, ...]
    copies: Mapping[Path, tuple[Path, ...]]

    @property
    def size_bytes(self) -> int:
        """Return how much a layout holds that another one does not share."""
        copies = sum(pattern.link.size * (1 + len(self.copies[pattern.link.output])) for pattern in self.links)
        return copies + sum(path.stat().st_size for path in self.archives)


def pattern(tree: Path, links: Sequence[RecordedLink], linker: Linker) -> Pattern:
    """Look through a tree whose `links` can be done again; raise OSError where it cannot be read."""
    named = sorted({link.path(place).resolve() for link in links for place in link.inputs})
    return Pattern(
        links=tuple(_pattern(link, linker.environment) for link in links),
        archives=tuple(path for path in named if path.is_relative_to(tree) and archives.may_be_shuffled(path, linker.environment)),
        copies=_copies(tree, links),
    )


def compiled(links: Sequence[RecordedLink], room: Path, linker: Linker) -> tuple[list[RecordedLink], dict[Path, str]]:
    """Compile to `room` what links compile themselves; return the links, from objects alone.

    Those whose sources do not compile apart come second, by their output, with the reason. Raise OSError.
    """
    done, failed = [], {}
    for number, link in enumerate(links):
        objects = {place: room / f"{number}-{place}.o" for place in link.sources}
        if all(linker.run(link.compiler, compile_words(link, place, object_), link.directory) for place, object_ in objects.items()):
            done.append(apart(link, {place: str(object_) for place, object_ in objects.items()}))
        else:
            failed[link.output] = f"the sources of {link.output.name} do not compile apart from its link"
    return done, failed


def _pattern(link: RecordedLink, environment: Mapping[str, str]) -> LinkPattern:
    """Say which objects of a link may change places.

    Those with constructors, tables or definitions that others have as well may not, nor may any move beyond a library, as linkers resolve
    from it what stands before.
    """
    contents = {place: link.path(place).read_bytes() for place in link.inputs}
    objects = tuple(place for place, content in contents.items() if objectfiles.is_object(content))
    rivals = objectfiles.rivals([link.path(place) for place in objects], environment) if len(objects) > 1 else None
    groups: list[list[int]] = [[]]
    for place, word in enumerate(link.arguments):
        if place not in objects:
            if place in contents or word.startswith("-l"):
                groups.append([])
        elif rivals is not None and str(link.path(place)) not in rivals and not objectfiles.keeps_its_place(contents[place]):
            groups[-1].append(place)
    return LinkPattern(link, objects, tuple(tuple(group) for group in groups if len(group) > 1))


def _copies(tree: Path, links: Sequence[RecordedLink]) -> dict[Path, tuple[Path, ...]]:
    """Return, by the output of a link, which other files of a tree are the same: a build may copy what it linked to where it is used."""
    by_size: dict[int, list[Path]] = {}
    for path in files(tree):
        if not path.is_symlink():
            by_size.setdefault(path.stat().st_size, []).append(path)
    return {
        link.output: tuple(
            path for path in by_size.get(link.size, ()) if path != link.output.resolve() and is_same(path, link.size, link.digest)
        )
        for link in links
    }
