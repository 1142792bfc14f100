"""What layouts of a build are made from: a tree, its links, and what may come in another order in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build import archives, objectfiles, treecopies
from perfdiff.build.linker import Linker
from perfdiff.build.links import Link, apart, compile_words, is_same
from perfdiff.build.treecopies import Root

OBJECTS = ".perfdiff-layout"  # folder of a tree for objects that are made for its links; gone when it is ready


@dataclass(frozen=True, slots=True)
class LinkPattern:
    """A link, the places of all object files among its arguments, and groups of those that may change places with each other."""

    link: Link
    objects: tuple[int, ...]
    exchangeable: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A tree to be copied. `mentioned` are the files that hold its path, relative to it; `archives` those whose members may come in any
    order; `copies` name, by the output of a link, further files that are the same.
    """

    tree: Path
    mentioned: tuple[Path, ...]
    links: tuple[LinkPattern, ...]
    archives: tuple[Path, ...]
    copies: Mapping[Path, tuple[Path, ...]]


def pattern(tree: Path, links: Sequence[Link], linker: Linker) -> Pattern:
    """Look through a tree whose `links` can be done again; raise OSError where it cannot be read."""
    named = sorted({link.path(place).resolve() for link in links for place in link.inputs})
    return Pattern(
        tree=tree,
        mentioned=treecopies.mentions(tree),
        links=tuple(_pattern(link, linker.environment) for link in links),
        archives=tuple(path for path in named if path.is_relative_to(tree) and archives.may_be_shuffled(path, linker.environment)),
        copies=_copies(tree, links),
    )


def compiled(tree: Path, links: Sequence[Link], stage: Path, linker: Linker) -> tuple[list[Link], dict[Path, str]]:
    """Make `stage` a copy of a tree in which what links compile themselves is compiled; return the links, from objects alone.

    Those whose sources do not compile apart come second, by their output, with the reason. Raise OSError.
    """
    treecopies.copy_tree(tree, stage, treecopies.mentions(tree))
    room = stage / OBJECTS
    room.mkdir()
    done, failed = [], {}
    for number, link in enumerate(links):
        moved = link.moved(Root.of(tree), Root.of(stage))
        objects = {place: room / f"{number}-{place}.o" for place in moved.sources}
        if all(linker.run(link.compiler, compile_words(moved, place, object_), moved.directory) for place, object_ in objects.items()):
            done.append(apart(moved, {place: str(object_) for place, object_ in objects.items()}))
        else:
            failed[link.output] = f"the sources of {link.output.name} do not compile apart from its link"
    return done, failed


def _pattern(link: Link, environment: Mapping[str, str]) -> LinkPattern:
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


def _copies(tree: Path, links: Sequence[Link]) -> dict[Path, tuple[Path, ...]]:
    """Return, by the output of a link, which other files of a tree are the same: a build may copy what it linked to where it is used."""
    by_size: dict[int, list[Path]] = {}
    for path in treecopies.files(tree):
        if not path.is_symlink():
            by_size.setdefault(path.stat().st_size, []).append(path)
    return {
        link.output: tuple(
            path for path in by_size.get(link.size, ()) if path != link.output.resolve() and is_same(path, link.size, link.digest)
        )
        for link in links
    }
