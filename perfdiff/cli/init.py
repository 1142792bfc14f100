"""`perfdiff init`: write a commented configuration for the project one stands in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from perfdiff import configuration
from perfdiff.cli import exits, options, output
from perfdiff.config import TEMPLATE_COMMAND, BuildConfig, CompareConfig, ProbeConfig, WorkloadConfig
from perfdiff.configuration import buildsystem, javaproject, phpproject, pythonproject, servers
from perfdiff.configuration.buildsystem import BuildSystem
from perfdiff.configuration.servers import Hint
from perfdiff.errors import UsageError

app = options.application()

_TEMPLATE = """\
# What perfdiff builds and runs. All keys: docs/configuration.md of perfdiff.

[build]
# {says}
{command}
# Files of this checkout that are copied over both revisions, such as benchmark drivers that old revisions lack:
# overlay = ["bench/"]
# timeout_s = {build_timeout:g}

# One or more workloads, run in the built tree of each revision. Small and large inputs let perfdiff say how cost grows.
[[workload]]
name = "main"
command = "{workload}"
parameters = {{ n = [1000, 3000, 10000, 30000] }}
# runs = {runs}                 # of each side at each point, at most
# setup = "./bench/generate {{n}} > input"   # once before the runs of a point; what it leaves in the tree stays for them
# prepare = "sync"              # before each run, outside its time
# warmup = {warmup}               # runs of each side at each point that are thrown away
# alone = true                  # its runs share more than their tree (a port, a file in /tmp): never base and head at the same time
# timeout_s = {workload_timeout:g}
# exit_codes = [0]

{languages}[probes]
# overhead = {overhead:g}          # share of CPU time that probes may add
# exclude = ["third_party/*"]

[compare]
# min_effect = {min_effect:g}        # smaller shifts are reported as below the threshold of interest
# fdr = {fdr:g}               # false discovery rate over all functions and metrics
"""

_INSTALLED = "{file} was found. Each revision is installed into an environment of its own; a command takes the place of that:"
_PYTHON_COMMAND = "python benchmark.py {n}"
_PYTHON = """\
[python]
# interpreter = "python3"      # by name or path; all revisions run under it
# requirements = [".[bench]", "bench/requirements.txt"]   # of workloads, besides what the project requires
# editable = true              # installed by its build back end, even where it can be imported as it lies

"""
_JAVA_COMMAND = "java -cp {classes} {main} {{n}}"
_JAVA = """\
[java]
# home = "/usr/lib/jvm/java-17-openjdk-amd64"   # the JDK of builds and workloads; else JAVA_HOME's, else that of `javac` on PATH

"""

_PHP_COMMAND = "php {script} {{n}}"
_AS_IT_LIES = "{file} was found. Each revision runs as it lies, with the `vendor` that it has. What builds more of it, if anything:"
_PHP = """\
[php]
# interpreter = "php8.2"       # by name or path: its release, headers and ini files; else `php` on PATH

"""
_SERVICES = """\
# A server, as {files} told. Each run may start these, in this order, and send it requests = "requests.toml" in place of a command; what is
# written here is a guess: docs/howto/server.md of perfdiff.
{lines}

"""
_NO_BUILD = "no build system was found: fill in the build command, or remove it from what is Python or PHP alone"


@dataclass(frozen=True, slots=True)
class PhpFound:
    """A PHP project: the file that tells it, and a script of it that may be a workload, None where none is known."""

    file: str
    script: str | None


@app.command()
def init(
    force: Annotated[bool, typer.Option("--force", help="Replace an existing perfdiff.toml.")] = False,
    repository: options.Repository = Path(),
) -> None:
    """Find the build system and write a commented perfdiff.toml to fill in."""
    with exits.exceptions_become_codes():
        here = repository.absolute()
        folder = here if _found(here) else configuration.project(here)
        target = folder / configuration.FILE
        if target.exists() and not force:
            raise UsageError(f"{target} is there already; --force replaces it", slug="config-exists")
        found = _found(folder)
        java = _start(folder, found)
        try:
            target.write_text(template(found, java, servers.hints(folder)), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror}", slug="output-unwritable") from error
        if isinstance(found, PhpFound):
            built = f"a PHP project, as {found.file} tells"
        elif isinstance(found, str):
            built = f"a Python project, as {found} tells"
        else:
            built = f"built with '{found.command}'" if found else _NO_BUILD
        is_guessed = bool(java and java.main) or (isinstance(found, PhpFound) and found.script is not None)
        next_step = "see whether the workload's command is what you want to compare" if is_guessed else "fill in the workload's command"
        output.write(f"wrote {target} ({built})\nnext: {next_step}, then run `perfdiff BASE HEAD`")


def _found(folder: Path) -> BuildSystem | PhpFound | str | None:
    """Return the file that tells a Python project, else the build system, where there is one; C's before Java's, as bindings have both.

    A makefile that compiles nothing is what developers of PHP use.
    """
    system = buildsystem.detect(folder)
    found = pythonproject.recognise(folder, ()) or (system if buildsystem.compiles(folder) else None) or javaproject.build_system(folder)
    php = phpproject.recognise(folder, ()) if found is None else None
    return PhpFound(php, phpproject.script(folder)) if php else found or system


def _start(folder: Path, found: BuildSystem | PhpFound | str | None) -> javaproject.Start | None:
    """Return what the programs of a Java project are started with, None of other projects."""
    return javaproject.start(folder, found) if isinstance(found, BuildSystem) and found.name in javaproject.BUILD_SYSTEMS else None


def template(found: BuildSystem | PhpFound | str | None, java: javaproject.Start | None = None, hints: Sequence[Hint] = ()) -> str:
    """Return the text of a configuration for a build system, or for the Python or PHP project that a file tells.

    `java` is what the programs of a Java project are started with, `hints` are of services. Where nothing is known, what builds the
    program is to be filled in.
    """
    build, workload, probes, compare = BuildConfig(""), WorkloadConfig("", ""), ProbeConfig(), CompareConfig()
    is_python = isinstance(found, str)
    if isinstance(found, PhpFound):
        says, command = _AS_IT_LIES.format(file=found.file), '# command = "composer install --no-dev"'
    elif isinstance(found, str):
        says, command = _INSTALLED.format(file=found), '# command = "python -m pip install -e ."'
    elif found:
        text = json.dumps(found.command)
        says, command = f"{found.file} was found. The command runs in a fresh tree of each revision.", f"command = {text}"
    else:
        says, command = "Whatever builds a fresh tree; what is Python or PHP alone needs no command:", 'command = "make"'
    started = _JAVA_COMMAND.format(classes=":".join(java.classes), main=java.main or "Main") if java else TEMPLATE_COMMAND
    if isinstance(found, PhpFound):
        started = _PHP_COMMAND.format(script=found.script or "benchmark.php")
    return _TEMPLATE.format(
        says=says,
        command=command,
        languages=_services(hints) + (_PYTHON if is_python else _PHP if isinstance(found, PhpFound) else _JAVA if java else ""),
        workload=_PYTHON_COMMAND if is_python else started,
        build_timeout=build.timeout_s,
        runs=workload.runs,
        warmup=workload.warmup,
        workload_timeout=workload.timeout_s,
        overhead=probes.overhead,
        min_effect=compare.min_effect,
        fdr=compare.fdr,
    )


def _services(hints: Sequence[Hint]) -> str:
    """Return what a configuration says of services, as comments; nothing where there are no hints."""
    if not hints:
        return ""
    files = ", ".join(dict.fromkeys(hint.file for hint in hints))
    lines = "\n#\n".join("\n".join(f"# {line}" for line in hint.lines) for hint in hints)
    return _SERVICES.format(files=files, lines=lines)
