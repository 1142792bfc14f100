"""The doctor: what it finds here, what it says where something is missing, and how its answer is printed."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path

import pytest

import programs
import runtimes
from perfdiff import __version__
from perfdiff.cli.exits import ExitCode
from perfdiff.collect.hosts import doctor, machine, servicehost
from perfdiff.collect.hosts.machine import Pmu
from perfdiff.config import BuildConfig, Config, ServiceConfig, WorkloadConfig
from perfdiff.languages.check import Check
from perfdiff.languages.java import jdks
from perfdiff.languages.java.traits import JavaConfig
from perfdiff.languages.php.traits import PhpConfig
from perfdiff.languages.python import interpreters, pip
from perfdiff.languages.python.traits import PythonConfig
from perfdiff.records.schema import Environment
from test_processes import marked

ROOT = Path(__file__).parent.parent


def named(checks: tuple[Check, ...], name: str) -> Check:
    return next(check for check in checks if check.name == name)


def of(**languages: PythonConfig | JavaConfig | PhpConfig) -> Config:
    """Return the configuration of a project in these languages."""
    return Config(BuildConfig(""), (), languages=languages)


def executable(folder: Path, name: str, answer: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return path


def test_this_machine_can_compare(tmp_path: Path) -> None:
    checks = doctor.examine(tmp_path / "cache", os.environ, tmp_path)
    assert doctor.can_compare(checks)
    assert named(checks, "git").found
    assert "gcc" in named(checks, "C compiler").says.lower() or "cc" in named(checks, "C compiler").says


def test_what_is_missing_comes_with_a_remedy(tmp_path: Path) -> None:
    checks = doctor.examine(tmp_path / "cache", {"PATH": str(tmp_path)}, tmp_path)
    missing = {check.name for check in checks if not check.found}
    assert {"git", "C compiler", "C++ compiler", "make", "cmake", "ninja", "meson", "autoconf"} <= missing
    assert all(check.remedy for check in checks if not check.found)
    assert not doctor.can_compare(checks)


def test_absent_build_tools_do_not_keep_from_comparing(tmp_path: Path) -> None:
    executable(tmp_path, "git", "git version 2")
    executable(tmp_path, "cc", "cc 1.0")
    checks = doctor.examine(tmp_path / "cache", {"PATH": str(tmp_path)}, tmp_path)
    assert not named(checks, "cmake").found
    assert doctor.can_compare(checks)


def test_compiler_behind_a_compiler_cache_is_the_one_told(tmp_path: Path) -> None:
    executable(tmp_path, "ccache", "ccache 4.9")
    executable(tmp_path, "own-gcc", "own compiler 7.1")
    checks = doctor.examine(tmp_path / "cache", {"PATH": str(tmp_path), "CC": "ccache own-gcc"}, tmp_path)
    assert named(checks, "C compiler").says == f"own compiler 7.1 at {tmp_path / 'own-gcc'}"


def test_the_cache_is_made_for_its_user_alone_and_one_that_others_can_write_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert named(doctor.examine(folder, os.environ, tmp_path), "cache").found
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    open_to_all = named(doctor.examine(folder, os.environ, tmp_path), "cache")
    assert not open_to_all.found
    assert "chmod 700" in open_to_all.says


def test_cache_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    checks = doctor.examine(tmp_path / "file" / "cache", os.environ, tmp_path)
    cache = named(checks, "cache")
    assert not cache.found
    assert "cannot be made" in cache.says
    assert "--cache" in cache.remedy
    assert not doctor.can_compare(checks)


@pytest.mark.parametrize(
    ("state", "found", "remedy"),
    [(Pmu.PRESENT, True, ""), (Pmu.FORBIDDEN, False, "perf_event_paranoid"), (Pmu.ABSENT, False, "virtual machines rarely have one")],
)
def test_counters_are_present_forbidden_or_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Pmu, found: bool, remedy: str
) -> None:
    monkeypatch.setattr(machine, "pmu", lambda: state)
    check = named(doctor.examine(tmp_path, os.environ, tmp_path), "hardware counters")
    assert (check.found, check.needed) == (found, False)
    assert remedy in check.remedy


@pytest.mark.parametrize(("load", "found"), [(0.1, True), (1000.0, False)])
def test_load_is_judged_by_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: float, found: bool) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    assert named(doctor.examine(tmp_path, os.environ, tmp_path), "load").found is found


@pytest.mark.parametrize(("governor", "found"), [("performance", True), ("powersave", False), (None, True)])
def test_only_a_governor_that_changes_the_clock_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, governor: str | None, found: bool
) -> None:
    monkeypatch.setattr(machine, "governor", lambda: governor)
    assert named(doctor.examine(tmp_path, os.environ, tmp_path), "governor").found is found


READY = "exec python3 -m http.server --bind 127.0.0.1 {port}"


def examined(folder: Path, *services: ServiceConfig, command: str = "") -> tuple[Check, ...]:
    """Return what is told of services in a project whose code is there."""
    project = folder / "project"
    folder.mkdir(exist_ok=True)
    programs.git(folder, "init", "-q", str(project))
    (project / "app.py").write_text("print('no such table', flush=True)\nraise SystemExit(3)\n")
    config = Config(BuildConfig(command), (WorkloadConfig("main", "true"),), services=services)
    found = tuple(servicehost.examine(config, project, folder, os.environ))
    assert sorted(path.name for path in project.iterdir()) == [".git", "app.py"], "nothing is left in it"
    return found


def test_services_are_started_until_they_are_ready_and_ended(tmp_path: Path) -> None:
    database = ServiceConfig("db", READY, outside=True, install="echo rows > {folder}/rows")
    app = ServiceConfig("app", f"touch written; {READY}", ready="http://127.0.0.1:{port}/", setup="test -e app.py")
    checks = examined(tmp_path, database, app)
    assert [(check.name, check.found) for check in checks] == [("service db", True), ("service app", True), ("services", True)]
    assert checks[-1].says.startswith("db, app: ready in ")
    assert not marked(f"{os.getpid()}-1-db")
    compiled = examined(tmp_path / "compiled", database, replace(app, command="exec ./app"), command="make")[-2:]
    assert [check.says.partition(":")[0] for check in compiled] == ["db", "app"]
    assert compiled[1].says.endswith("not tried here")


def test_services_that_cannot_start_are_told_with_what_they_printed(tmp_path: Path) -> None:
    (first, last) = examined(tmp_path, ServiceConfig("app", "exec python3 app.py", timeout_s=20.0))
    assert first.found
    assert not last.found
    assert "service app, 'exec python3 app.py', exited 3 before it was ready" in last.says
    assert "no such table" in last.says


def test_programs_and_ports_that_services_lack_are_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        own = ServiceConfig("db", f"exec no-such-program --port {port} $(test $(id -u) != 0)", outside=True, timeout_s=5.0)
        program, fixed, _ = examined(tmp_path, own)
    assert (program.found, program.says) == (False, "no-such-program: not on PATH")
    assert (fixed.found, fixed.says) == (False, f"port {port} is taken by another program")


def test_environment_describes_this_machine() -> None:
    found = machine.environment(os.environ)
    assert found.cores == len(os.sched_getaffinity(0))
    assert found.kernel == f"Linux {os.uname().release}"
    assert found.perfdiff == __version__
    assert datetime.fromisoformat(found.created).tzinfo is not None
    assert all(getattr(found, field.name) != "" for field in fields(Environment))


def run_doctor(*arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perfdiff", "doctor", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


def test_text_marks_what_is_missing_and_the_exit_code_tells(tmp_path: Path) -> None:
    good = run_doctor("--cache", str(tmp_path / "cache"), path=os.environ["PATH"])
    assert (good.returncode, good.stderr) == (ExitCode.FINE, "")
    assert good.stdout.endswith("perfdiff can compare here.\n")
    bad = run_doctor("--cache", str(tmp_path / "cache"), path=str(tmp_path))
    assert bad.returncode == ExitCode.NOT_MEASURED
    assert "MISSING  git" in bad.stdout
    assert "→ install git" in bad.stdout


def test_a_folder_without_a_checkout_is_told_with_what_to_do(tmp_path: Path) -> None:
    done = run_doctor("--repo", str(tmp_path), "--cache", str(tmp_path / "cache"), path=os.environ["PATH"])
    assert done.returncode == ExitCode.FINE
    assert f"{tmp_path} is not in a git repository" in done.stdout
    assert "→ run perfdiff in a checkout" in done.stdout
    assert done.stdout.endswith("perfdiff can compare on this machine, and there is no checkout to compare in here.\n")


def test_json_holds_every_check(tmp_path: Path) -> None:
    done = run_doctor("--format", "json", "--cache", str(tmp_path / "cache"), path=os.environ["PATH"])
    answer = json.loads(done.stdout)
    assert answer["schema"] == "perfdiff.doctor/1"
    assert answer["can_compare"] is True
    assert [check["name"] for check in answer["checks"]] == [
        check.name for check in doctor.examine(tmp_path / "cache", os.environ, ROOT, of())
    ]
    assert set(answer["checks"][0]) == {"name", "needed", "found", "says", "remedy"}


def test_a_python_project_needs_its_interpreter_with_headers_and_environments(tmp_path: Path) -> None:
    checks = doctor.examine(tmp_path / "cache", os.environ, tmp_path, of(python=PythonConfig()))
    found = {name: named(checks, name) for name in ("interpreter", "Python headers", "environments")}
    assert all(check.found and check.needed for check in found.values())
    assert "'python3' on PATH" in found["interpreter"].says
    assert (Path(found["Python headers"].says) / "Python.h").is_file()
    assert "with pip" in found["environments"].says
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.name != "python"] == []


def test_an_interpreter_that_is_not_there_is_missing_only_where_a_project_names_it(tmp_path: Path) -> None:
    checks = doctor.examine(tmp_path / "cache", os.environ, tmp_path, of(python=PythonConfig(interpreter="python9.9")))
    assert not named(checks, "interpreter").found
    assert "[python] interpreter" in named(checks, "interpreter").remedy
    assert not doctor.can_compare(checks)
    elsewhere = doctor.examine(tmp_path / "cache", {**os.environ, "PATH": str(tmp_path)}, tmp_path)
    assert not named(elsewhere, "interpreter").needed


def test_what_an_interpreter_lacks_is_told_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = interpreters.described(sys.executable)
    monkeypatch.setattr(interpreters, "described", lambda *_: replace(whole, include=(tmp_path / "include",)))
    monkeypatch.setattr(pip, "provide", lambda *_: None)
    checks = doctor.examine(tmp_path / "cache", os.environ, tmp_path, of(python=PythonConfig()))
    headers, environments = named(checks, "Python headers"), named(checks, "environments")
    assert (headers.found, headers.needed, "python3-dev" in headers.remedy) == (False, True, True)
    assert (environments.found, environments.needed, "python3-pip" in environments.remedy) == (False, False, True)
    assert not doctor.can_compare(checks)


def test_a_java_project_needs_a_jdk_with_headers_and_a_parser(tmp_path: Path) -> None:
    checks = doctor.examine(runtimes.lent_to(tmp_path / "cache"), os.environ, tmp_path, of(java=JavaConfig()))
    found = {name: named(checks, name) for name in ("JDK", "JDK headers", "Java parser", "Java agent")}
    assert all(check.found and check.needed for check in found.values())
    assert (Path(found["JDK headers"].says) / "jvmti.h").is_file()
    assert re.search(r"OpenJDK \d+\..* at /.* \(\S+, heap up to \S+, \d+ CPUs\)", found["JDK"].says)


def test_a_jdk_that_is_not_there_is_missing_only_where_a_project_is_java(tmp_path: Path) -> None:
    checks = doctor.examine(tmp_path / "cache", os.environ, tmp_path, of(java=JavaConfig("no-such-folder")))
    assert (named(checks, "JDK").found, doctor.can_compare(checks)) == (False, False)
    assert "default-jdk-headless" in named(checks, "JDK").remedy
    elsewhere = doctor.examine(tmp_path / "cache", {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": ""}, tmp_path)
    assert (named(elsewhere, "JDK").found, named(elsewhere, "JDK").needed) == (False, False)


def test_a_jdk_without_headers_is_told_with_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "jdk/bin").mkdir(parents=True)
    home = jdks.find(os.environ).home
    for name in ("java", "javac"):
        (tmp_path / "jdk/bin" / name).symlink_to(home / "bin" / name)
    (tmp_path / "jdk/release").write_text('JAVA_VERSION="17.0.1"\n')
    checks = doctor.examine(tmp_path / "cache", os.environ, tmp_path, of(java=JavaConfig("jdk")))
    headers = named(checks, "JDK headers")
    assert (headers.found, headers.needed, "default-jdk-headless" in headers.remedy) == (False, True, True)
    assert headers.says.endswith("lacks jni.h and jvmti.h and linux/jni_md.h")
    assert not doctor.can_compare(checks)


def test_a_php_project_needs_php_with_headers_and_a_parser(tmp_path: Path) -> None:
    checks = doctor.examine(runtimes.lent_to(tmp_path / "cache"), os.environ, tmp_path, of(php=PhpConfig()))
    found = {name: named(checks, name) for name in ("PHP", "PHP headers", "PHP parser", "PHP extension")}
    assert all(check.found and check.needed for check in found.values()), found
    assert re.search(r"8\.\d+\.\d+ at /.* \(opcache (?:on|off); JIT (?:on|off); \d+ extensions", found["PHP"].says)
    assert "'php' on PATH" in found["PHP"].says


def test_a_php_that_is_not_there_is_missing_only_where_a_project_is_php(tmp_path: Path) -> None:
    checks = doctor.examine(tmp_path / "cache", os.environ, tmp_path, of(php=PhpConfig("php9.9")))
    assert (named(checks, "PHP").found, doctor.can_compare(checks)) == (False, False)
    assert "php-cli" in named(checks, "PHP").remedy
    elsewhere = doctor.examine(tmp_path / "cache", {**os.environ, "PATH": str(tmp_path)}, tmp_path)
    assert (named(elsewhere, "PHP").found, named(elsewhere, "PHP").needed) == (False, False)


@pytest.mark.parametrize(
    ("command", "lacking"),
    [
        ("python3 bench/run.py {n}", "bench/run.py"),
        ("python3 there.py {n}", None),
        ("no-such-program-at-all {n}", "no-such-program-at-all"),
        ("A=1 python3 -c pass", None),
        ("cd build && ./sort {n}", None),
        ("./made/by/the/build {n}", None),
        ("sh 'not closed", None),
    ],
)
def test_what_a_workload_starts_is_looked_for(tmp_path: Path, command: str, lacking: str | None) -> None:
    (tmp_path / "there.py").touch()
    config = Config(BuildConfig("make"), (WorkloadConfig("main", command),))
    checks = [check for check in doctor.examine(tmp_path / "cache", os.environ, tmp_path, config) if check.name == "workload main"]
    assert [check.says for check in checks if not check.found] == ([f"`{command}`: there is no {lacking}"] if lacking else [])
