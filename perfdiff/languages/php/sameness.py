"""Whether base and head are the same program: no function differs in what it does, and no other file that a workload may read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from perfdiff.languages.meanings import MeaningComparison
from perfdiff.languages.php.sources import FOREIGN_FOLDERS, source_files
from perfdiff.languages.php.syntax import as_ascii, parse
from perfdiff.languages.protocol import Counterpart, PlainBuild
from perfdiff.languages.tree_files import Unread, differing

# Read by people, by version control, by editors and by what checks code.
_NAMES = re.compile(
    r".*\.(?:md|rst|swp|orig|neon|dist)|(?:README|CHANGELOG|CHANGES|HISTORY|NEWS|UPGRADE|UPGRADING|AUTHORS|CONTRIBUTORS|CONTRIBUTING|SECURITY"
    r"|CODE_OF_CONDUCT|LICEN[CS]E|COPYING)(?:[-.].*)?|\.git\w*|\.editorconfig|\.php[-_]cs(?:[-.].*)?|\.styleci\.yml|\.scrutinizer\.yml"
    r"|\.travis\.yml|psalm\.xml|phpunit\.xml|phpcs\.xml"
)
_FOLDERS = FOREIGN_FOLDERS | {".github", ".circleci", ".idea", ".vscode", "doc", "docs"}
# What Composer writes of the packages, which are told by their versions.
_NOTED = re.compile(r"(?:.*/)?vendor/(?:autoload\.php|composer/.*\.(?:php|json))|composer\.(?:json|lock)")
_UNREAD = Unread(_NAMES, _FOLDERS, _NOTED)


def same_code(base: PlainBuild, head: PlainBuild, pairs: Sequence[Counterpart], packages: Collection[str] = ()) -> MeaningComparison:
    """Compare the trees of two plain builds whose functions are `pairs`, those of some `packages` of others among them."""
    return MeaningComparison(not any(pair.change.is_suspect for pair in pairs), tuple(_differing(base, head, packages)))


def _differing(base: PlainBuild, head: PlainBuild, packages: Collection[str]) -> Iterator[str]:
    indexed = [{one.file: one.data for one in source_files(build.tree, packages)} for build in (base, head)]
    for name, present in differing(base, head, _UNREAD):
        known = [indexed[side].get(name) for side in present]
        if not all(data is not None and not parse(as_ascii(data)).has_error for data in known):
            yield name
