"""Compilers of an environment: which there are, and which one a build takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdiff.build import compilers
from perfdiff.collect.hosts import machine


def tools(folder: Path, *names: str) -> Path:
    """Write programs that say their names as their version."""
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\necho '{name} 7.1'\necho more\n")
        (folder / name).chmod(0o755)
    return folder


def test_compilers_are_known_by_their_names(tmp_path: Path) -> None:
    tools(tmp_path, "gcc", "gcc-12", "x86_64-linux-gnu-g++-9.1", "clang++", "gcc-ar", "clang-format", "ccache", "not-executable-gcc")
    (tmp_path / "not-executable-gcc").chmod(0o644)
    assert compilers.on_path({"PATH": str(tmp_path)}) == ("clang++", "gcc", "gcc-12", "x86_64-linux-gnu-g++-9.1")


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({}, "gcc"),
        ({"CC": ""}, "gcc"),
        ({"CC": "own-cc -m64"}, "own-cc"),
        ({"CC": "ccache clang -m32"}, "clang"),
        ({"CC": "'cc ache' clang"}, "clang"),
        ({"CC": "tcc"}, "tcc"),
        ({"CC": "nowhere-gcc"}, None),
        ({"CXX": "clang"}, "gcc"),
    ],
)
def test_a_build_takes_the_compiler_that_the_environment_names(tmp_path: Path, given: dict[str, str], taken: str | None) -> None:
    environment = {"PATH": str(tools(tmp_path, "ccache", "clang", "gcc", "g++", "own-cc", "tcc")), **given}
    found = compilers.chosen(environment)
    assert found == (tmp_path / taken if taken else None)
    assert machine.environment(environment).compiler == (f"{taken} 7.1" if taken else "none found")
    if found:
        assert f"{found} {taken} 7.1\nmore\n" in compilers.identity(environment)


def test_a_compiler_that_does_not_answer_is_told_by_its_path(tmp_path: Path) -> None:
    broken = tmp_path / "gcc"
    broken.write_text("#!/nowhere/sh\n")
    broken.chmod(0o755)
    assert compilers.version(broken, {}) == str(broken)
