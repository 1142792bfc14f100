"""Levels of Java that build files name and that no JDK compiles for any more: what is given to the build in their place.

JDKs give old levels up: 17 compiles for 7 and later, 20 for 8 and later. Who builds an old project today names a later level by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LEAST = "8"  # that each JDK compiles for that is measured

_OLD = r"(?:1\.[1-7]|[1-7])"
# How files of ant and Maven define a property of such a level, and how compilers are given what a property says.
_DEFINED = re.compile(rf'<property\s+name="([\w.-]+)"\s+value="{_OLD}"|<([\w.-]+)>{_OLD}</')
_GIVEN = re.compile(r'\b(?:source|target|release)(?:="|>)\$\{([\w.-]+)\}')
_OF_MAVEN = ("maven.compiler.source", "maven.compiler.target", "maven.compiler.release")  # which its compiler is given anyway


def raised(text: str) -> Iterator[str]:
    """Yield arguments that give a later level in place of each old one that a build file's text defines as a property of its compilers.

    A level that it gives a compiler as a number stays as it is.
    """
    given = {*_GIVEN.findall(text), *_OF_MAVEN}
    names = dict.fromkeys(of_ant or of_maven for of_ant, of_maven in _DEFINED.findall(text))
    return (f"-D{name}={LEAST}" for name in names if name in given)
