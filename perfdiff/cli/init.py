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
from perfdiff.configuration import buildsystem, recognition, servers
from perfdiff.configuration.buildsystem import BuildSystem
from perfdiff.configuration.recognition import Draft
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

_SERVICES = """\
# A server, as {files} told. Each run may start these, in this order, and send it requests = "requests.toml" in place of a command; what is
# written here is a guess: docs/howto/server.md of perfdiff.
{lines}

"""


@dataclass(frozen=True, slots=True)
class ProjectFound:
    """What a project is: its build `system`, the language it is written in, by its title, with its draft, each None where it is not known.

    `sign` is the file that tells it.
    """

    sign: str
    system: BuildSystem | None = None
    title: str = ""
    draft: Draft | None = None


@app.command()
def init(
    force: Annotated[bool, typer.Option("--force", help="Replace an existing perfdiff.toml.")] = False,
    repository: options.Repository = Path(),
) -> None:
    """Find the build system and write a commented perfdiff.toml to fill in."""
    with exits.exceptions_become_codes(repository):
        here = repository.absolute()
        folder = here if project_in(here) else configuration.project(here)
        target = folder / configuration.FILE
        if target.exists() and not force:
            raise UsageError(f"{target} is there already; --force replaces it", slug="config-exists")
        found = project_in(folder)
        try:
            target.write_text(template(found, servers.hints(folder)), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror}", slug="output-unwritable") from error
        if found is None:
            built = _no_build()
        else:
            built = f"built with '{found.system.command}'" if found.system else f"a {found.title} project, as {found.sign} tells"
        is_guessed = found is not None and found.draft is not None and found.draft.is_guessed
        next_step = "see whether the workload's command is what you want to compare" if is_guessed else "fill in the workload's command"
        output.write(f"wrote {target} ({built})\nnext: {next_step}, then run `perfdiff BASE HEAD`")


def project_in(folder: Path) -> ProjectFound | None:
    """Return what a project is. Files of a language that leads go first, then C's build systems, as bindings have both, then others.

    A makefile that compiles nothing is what developers of scripts use.
    """
    system = buildsystem.detect(folder)
    languages = [(traits, kind) for traits, kind in recognition.kinds() if not kind.needs_build]
    for traits, kind in languages:
        if kind.leads and (sign := kind.recognise(folder, (), is_led=False)):
            return ProjectFound(sign, title=traits.title, draft=kind.draft(folder, sign))
    if system and buildsystem.compiles(folder):
        return ProjectFound(system.file, system)
    for traits, kind in recognition.kinds():
        if kind.needs_build and (own := kind.build_system(folder)):
            return ProjectFound(own.file, own, traits.title, kind.draft(folder, own.file))
    for traits, kind in languages:
        if sign := kind.recognise(folder, (), is_led=recognition.is_led(folder, kind)):
            return ProjectFound(sign, title=traits.title, draft=kind.draft(folder, sign))
    return ProjectFound(system.file, system) if system else None


def _unbuilt() -> str:
    """Return the languages whose projects need no command that builds them: `Python or PHP`."""
    return " or ".join(traits.title for traits, kind in recognition.kinds() if not kind.needs_build)


def _no_build() -> str:
    return f"no build system was found: fill in the build command, or remove it from what is {_unbuilt()} alone"


def template(found: ProjectFound | None, hints: Sequence[Hint] = ()) -> str:
    """Return the text of a configuration for a project; `hints` are of services.

    Where nothing is known of it, what builds the program is to be filled in.
    """
    build, workload, probes, compare = BuildConfig(""), WorkloadConfig("", ""), ProbeConfig(), CompareConfig()
    draft = found.draft if found else None
    if found is None:
        says, command = f"Whatever builds a fresh tree; what is {_unbuilt()} alone needs no command:", 'command = "make"'
    elif found.system:
        says = f"{found.system.file} was found. The command runs in a fresh tree of each revision."
        command = f"command = {json.dumps(found.system.command)}"
    else:
        assert draft is not None, "a language tells the project"
        assert draft.unbuilt is not None, "which needs no build"
        says, command = draft.unbuilt
    return _TEMPLATE.format(
        says=says,
        command=command,
        languages=_services(hints) + (draft.section if draft else ""),
        workload=draft.workload if draft else TEMPLATE_COMMAND,
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
