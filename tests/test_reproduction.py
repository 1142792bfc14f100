"""Commands and configuration that measure a comparison again."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdiff import configuration, reproduction
from perfdiff.config import BuildConfig, CacheSize, CompareConfig, Config, CountersConfig, MeasureConfig, ProbeConfig, WorkloadConfig
from perfdiff.configuration import Overrides
from perfdiff.languages.java.traits import JavaConfig
from perfdiff.languages.php.traits import PhpConfig
from perfdiff.languages.python.traits import PythonConfig
from perfdiff.records.schema import Point, Revision
from perfdiff.reproduction import ComparisonOrder

BASE, HEAD = Revision("v1", "a" * 40, "One"), Revision("v2", "b" * 40, "Two")
PLAIN = Config(BuildConfig("make"), (WorkloadConfig("sort", "./sort {n}", {"n": (1000, 3000)}),))

words = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="{}\0"), min_size=1, max_size=20).filter(str.strip)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
patterns = words.map(lambda text: f"{re.escape(text)}(.*)")
numbers = st.one_of(st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False, width=32))
shares = st.floats(0.001, 0.999)
caches = st.none() | st.builds(lambda kib, ways: CacheSize(kib * 1024, ways), st.integers(1, 10**6), st.integers(1, 64))


@st.composite
def workloads(draw: st.DrawFn) -> tuple[WorkloadConfig, ...]:
    found = []
    for number in range(draw(st.integers(1, 3))):
        parameters = draw(st.dictionaries(names, st.lists(numbers | words, min_size=1, max_size=3).map(tuple), max_size=3))
        command = " ".join([draw(words), *(f"{{{name}}}" for name in parameters)])
        found.append(
            WorkloadConfig(
                f"{draw(words)}{number}",
                command,
                parameters,
                draw(st.integers(2, 99)),
                draw(st.floats(0.5, 1e4)),
                (0, draw(st.integers(1, 255))),
                features={name: draw(patterns) for name in draw(st.sets(names, max_size=2)) - parameters.keys()},
            )
        )
    return tuple(found)


configs: st.SearchStrategy[Config] = st.builds(
    Config,
    build=st.builds(BuildConfig, words, st.lists(words, max_size=2).map(tuple), st.floats(0.5, 1e4)),
    workloads=workloads(),
    probes=st.builds(ProbeConfig, shares, st.lists(words, max_size=2).map(tuple), st.integers(0, 9), st.integers(1, 10**6)),
    compare=st.builds(CompareConfig, shares, shares, shares, st.integers(0, 10**6)),
    counters=st.builds(
        CountersConfig,
        st.none() | st.lists(st.sampled_from(["PAPI_TOT_INS", "PAPI_L1_DCM"]), unique=True).map(tuple),
        st.booleans(),
        st.floats(0.5, 1e4),
        caches,
        caches,
        caches,
        st.none() | st.integers(1, 8),
    ),
    measure=st.builds(MeasureConfig, st.none() | st.floats(0.5, 1e4), st.just(False), st.booleans(), st.integers(1, 99)),
    languages=st.fixed_dictionaries(
        {},
        optional={
            "python": st.builds(
                PythonConfig, words, st.lists(words, max_size=2).map(tuple), st.booleans(), st.lists(words, max_size=2).map(tuple)
            ),
            "java": st.builds(JavaConfig, st.none() | words),
            "php": st.builds(PhpConfig, st.none() | words),
        },
    ),
)


def read_back(text: str, folder: Path) -> Config:
    file = folder / reproduction.FILE
    file.write_text(text, encoding="utf-8")
    return replace(configuration.load(folder, overrides=Overrides(file=file), environment={}), source=None)


@settings(max_examples=80)
@given(configs)
def test_a_configuration_means_the_same_when_it_is_read_again(tmp_path_factory: pytest.TempPathFactory, config: Config) -> None:
    assert read_back(reproduction.configuration_text(config), tmp_path_factory.mktemp("c")) == config


def test_defaults_are_left_out_but_for_runs_and_seed() -> None:
    assert reproduction.configuration_text(PLAIN) == (
        '[build]\ncommand = "make"\n\n[compare]\nseed = 1\n\n'
        '[[workload]]\nname = "sort"\ncommand = "./sort {n}"\nparameters = { "n" = [1000, 3000] }\nruns = 10\n'
    )


def asked(**changes: Any) -> ComparisonOrder:
    return replace(ComparisonOrder(BASE, HEAD, ".", PLAIN, {}), **changes)


def test_revisions_are_pinned_to_commits() -> None:
    assert reproduction.command(asked()) == f"perfdiff {'a' * 40} {'b' * 40} --config perfdiff-ticket.toml"


def test_a_working_tree_is_said_to_be_missing() -> None:
    tree = Revision("working tree", None, "uncommitted changes on b1b2 Two")
    script = reproduction.script(asked(head=tree))
    assert "# head was the working tree, uncommitted changes on b1b2 Two: check that out first.\n" in script
    assert reproduction.command(asked(head=tree)) == f"perfdiff {'a' * 40} --config perfdiff-ticket.toml"


@pytest.mark.parametrize(
    ("parameters", "given"),
    [
        ({"n": 1000}, "--param n=1000"),
        ({"n": 0.5, "mode": "fast"}, "--param n=0.5 --param mode=fast"),
        ({"mode": "a b"}, "--param 'mode=a b'"),
        ({}, ""),
    ],
)
def test_one_point_is_asked_for_by_its_parameters(parameters: dict[str, float | str], given: str) -> None:
    command = reproduction.at_point(asked(), Point(0, "sort", parameters, "./sort"))
    assert command == f"{reproduction.command(asked())} --workload sort {given}".rstrip()


@pytest.mark.parametrize("value", ["a,b", " a", ""])
def test_a_point_whose_value_a_command_line_would_change_is_not_asked_for(value: str) -> None:
    assert reproduction.at_point(asked(), Point(0, "sort", {"mode": value}, "./sort")) is None


HOSTILE = "x\nEND_OF_CONFIGURATION\ntouch broken\r\ntouch broken; $(touch broken) `touch broken` '\""


def test_no_text_runs_as_part_of_the_script(tmp_path: Path) -> None:
    config = replace(PLAIN, build=BuildConfig(HOSTILE, (HOSTILE,)), workloads=(WorkloadConfig(HOSTILE, HOSTILE),))
    tree = Revision(HOSTILE, None, HOSTILE)
    script = reproduction.script(ComparisonOrder(tree, HEAD, HOSTILE, config, {"CFLAGS": HOSTILE}, missing=(HOSTILE,)))
    shim = tmp_path / "bin" / "perfdiff"
    shim.parent.mkdir()
    shim.write_text('#!/bin/sh\necho "$*" > called\nprintf %s "$CFLAGS" > cflags\n')
    shim.chmod(0o755)
    subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, env={"PATH": f"{shim.parent}:/usr/bin:/bin"}, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "called", "cflags", "perfdiff-ticket.toml"]
    assert (tmp_path / "cflags").read_bytes() == HOSTILE.encode()
    assert read_back((tmp_path / "perfdiff-ticket.toml").read_text(encoding="utf-8"), tmp_path).workloads == config.workloads


def test_homes_in_variables_are_those_of_who_runs_the_script() -> None:
    command = reproduction.command(asked(variables={"CFLAGS": "-O2 -I~/include", "CC": "clang"}))
    done = subprocess.run(
        ["/bin/sh", "-c", f'perfdiff() {{ printf "%s|%s" "$CFLAGS" "$CC"; }}; {command}'],
        env={"HOME": "/somebody", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "-O2 -I/somebody/include|clang"
    assert shlex.split(command)[-2:] == ["--config", "perfdiff-ticket.toml"]
