"""`perfdiff init`: try the project one stands in, and write a commented configuration with what was seen to work."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perfdiff import configuration, temporary, units
from perfdiff.cli import exits, options, output, waiting
from perfdiff.config import TEMPLATE_COMMAND, BuildConfig, CompareConfig, Config, ProbeConfig, WorkloadConfig
from perfdiff.configuration import Overrides, buildsystem, recognition, servers
from perfdiff.configuration.buildsystem import BuildSystem
from perfdiff.configuration.recognition import Draft
from perfdiff.configuration.servers import Hint
from perfdiff.errors import ConfigError, MeasurementError, UsageError
from perfdiff.languages.frameworks import frameworks
from perfdiff.progress import Progress

if TYPE_CHECKING:
    from perfdiff.exploring import TriedSuite, Tryout

app = options.application()

PARAMETERS: Mapping[str, tuple[float | str, ...]] = {"n": (1000, 3000, 10000, 30000)}
_VALUES = ", ".join(map(str, PARAMETERS["n"]))

_TEMPLATE = """\
# What perfdiff builds and runs. All keys: docs/configuration.md of perfdiff.

[build]
# {says}
{command}
# Files of this checkout that are copied over both revisions, such as benchmark drivers that old revisions lack:
# overlay = ["bench/"]
# timeout_s = {build_timeout:g}

# One or more workloads, run in the built tree of each revision. Small and large inputs let perfdiff say how cost grows.
{workloads}# runs = {runs}                 # of each side at each point, at most
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
def init(  # noqa: PLR0913 (each is an option of the command line)
    force: Annotated[bool, typer.Option("--force", help="Replace an existing perfdiff.toml.")] = False,
    no_build: Annotated[bool, typer.Option("--no-build", help="Build and run nothing; the workload is left to fill in.")] = False,
    *,
    repository: options.Repository = Path(),
    cache: options.Cache = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Build the project once, try its benchmarks and tests, and write a perfdiff.toml with what works.

    Benchmarks and tests of frameworks that perfdiff knows are listed, and the shortest that calls functions of the project is run; of
    several kinds the most telling is written. Where none works, the workload stands there as a comment, to be filled in.
    """
    with exits.exceptions_become_codes(repository):
        here = repository.absolute()
        folder = here if project_in(here) else configuration.project(here)
        target = folder / configuration.FILE
        if target.exists() and not force:
            raise UsageError(f"{target} is there already; --force replaces it", slug="config-exists")
        project = project_in(folder)
        tryout = None
        if project is not None and not no_build:
            with waiting.progress(quiet=quiet, verbose=verbose) as progress:
                tryout = _tried(folder, project, options.cache_folder(cache), progress)
                project = _as_built(project, folder, tryout.config)
        try:
            target.write_text(template(project, servers.hints(folder), tryout), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror}", slug="output-unwritable") from error
        output.write("\n".join([f"wrote {target} ({_built(project, tryout)})", *_seen(tryout), f"next: {_next(tryout)}"]))


def _tried(folder: Path, project: ProjectFound, cache: Path, progress: Progress) -> Tryout:
    """Build the project and return what works of it; raise PerfdiffError where it cannot be built."""
    from perfdiff.exploring import explored
    from perfdiff.request import Request

    draft = project.draft
    commands = [WorkloadConfig("main", draft.workload, PARAMETERS)] if draft and draft.is_guessed else []
    with temporary.folder() as room:
        empty = room / configuration.FILE  # whatever is configured now is not asked
        empty.touch()
        overrides = Overrides(file=empty)
        try:
            config = configuration.load(folder, overrides=overrides, environment=os.environ)
        except ConfigError as error:
            if error.slug != "config-no-workload":
                raise
            command = replace(overrides, command=draft.workload if draft else TEMPLATE_COMMAND, parameters=PARAMETERS)
            config = configuration.load(folder, overrides=command, environment=os.environ)
    try:
        return explored(Request(folder, (), config, cache, dict(os.environ)), commands, progress)
    except MeasurementError as error:
        text = f"{error}; nothing was written: `perfdiff init --no-build` writes a file to fill in without building"
        raise MeasurementError(text, slug=error.slug, detail=error.detail) from error


def _as_built(project: ProjectFound, folder: Path, config: Config | None) -> ProjectFound:
    """Return what a project is by what was built of it, which may be another language's than its files tell first."""
    if config is None or config.build_guessed_from is None or bool(config.build.command) == bool(project.system):
        return project
    sign = config.build_guessed_from
    if config.build.command:
        return ProjectFound(sign, BuildSystem("", sign, config.build.command))
    kinds = ((traits, kind) for traits, kind in recognition.kinds() if traits.name in config.languages)
    drafts = (ProjectFound(sign, title=traits.title, draft=kind.draft(folder, sign)) for traits, kind in kinds if not kind.needs_build)
    return next(drafts, project)


def _build_command(system: BuildSystem, tryout: Tryout | None) -> str:
    """Return the command that built what works, which may have options that the build system's own has not."""
    return tryout.config.build.command if tryout is not None and tryout.works and tryout.config else system.command


def _built(project: ProjectFound | None, tryout: Tryout | None) -> str:
    if project is None:
        return f"no build system was found: fill in the build command, or remove it from what is {_unbuilt()} alone"
    if project.system is None:
        return f"a {project.title} project, as {project.sign} tells"
    return f"built with '{_build_command(project.system, tryout)}'"


def _seen(tryout: Tryout | None) -> Iterator[str]:
    """Yield what was seen to work, and where nothing was, why."""
    if tryout is None:
        return
    for tried in tryout.suites:
        yield f"works: {_told(tried)}"
    if tryout.command:
        yield f"works: `{tryout.command.command}`"
    if not tryout.works:
        yield from (f"does not work: {failure}" for failure in tryout.failures)


def _next(tryout: Tryout | None) -> str:
    if tryout is not None and tryout.works:
        return "run `perfdiff BASE HEAD`"
    return "fill in the workload's command, then run `perfdiff BASE HEAD`"


def _told(tried: TriedSuite) -> str:
    title = frameworks()[tried.suite.kind].framework.title
    cases = f"{tried.cases} {'case' if tried.cases == 1 else 'cases'} of {title}"
    took, functions = units.duration(tried.run_s * 1e9), "1 function" if tried.functions == 1 else f"{tried.functions} functions"
    return f"{cases}; the shortest, {tried.shortest}, takes {took} a run and calls {functions} of the project"


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


def template(project: ProjectFound | None, hints: Sequence[Hint] = (), tryout: Tryout | None = None) -> str:
    """Return the text of a configuration for a project; `hints` are of services, `tryout` tells what works.

    Where nothing is known of it, what builds the program is to be filled in.
    """
    build, workload, probes, compare = BuildConfig(""), WorkloadConfig("", ""), ProbeConfig(), CompareConfig()
    draft = project.draft if project else None
    if project is None:
        says, command = f"Whatever builds a fresh tree; what is {_unbuilt()} alone needs no command:", 'command = "make"'
    elif project.system:
        says = f"{project.system.file} was found. The command runs in a fresh tree of each revision."
        command = f"command = {json.dumps(_build_command(project.system, tryout))}"
    else:
        assert draft is not None, "a language tells the project"
        assert draft.unbuilt is not None, "which needs no build"
        says, command = draft.unbuilt
    return _TEMPLATE.format(
        says=says,
        command=command,
        languages=_services(hints) + (draft.section if draft else ""),
        workloads=_workloads(tryout, draft.workload if draft else TEMPLATE_COMMAND),
        build_timeout=build.timeout_s,
        runs=workload.runs,
        warmup=workload.warmup,
        workload_timeout=workload.timeout_s,
        overhead=probes.overhead,
        min_effect=compare.min_effect,
        fdr=compare.fdr,
    )


def _workloads(tryout: Tryout | None, drafted: str) -> str:
    """Return the tables of the workloads that work; where none does, one as a comment, with a program that the build made."""
    if tryout is not None and tryout.suites:
        return "\n".join(
            f"[[workload]]\n# {_told(tried)}\n{tried.suite.kind} = {json.dumps(tried.suite.what)}\n" for tried in tryout.suites
        )
    command = drafted
    if tryout is not None and tryout.programs:
        command = f"{tryout.programs[0]} {{n}}"
    table = f'[[workload]]\nname = "main"\ncommand = {json.dumps(command)}\nparameters = {{ n = [{_VALUES}] }}\n'
    if tryout is not None and tryout.command:
        return table
    others = [f"# The build made {', '.join(tryout.programs)}.\n"] if tryout is not None and tryout.programs else []
    return "".join([*others, *(f"# {line}\n" for line in table.splitlines())])


def _services(hints: Sequence[Hint]) -> str:
    """Return what a configuration says of services, as comments; nothing where there are no hints."""
    if not hints:
        return ""
    files = ", ".join(dict.fromkeys(hint.file for hint in hints))
    lines = "\n#\n".join("\n".join(f"# {line}" for line in hint.lines) for hint in hints)
    return _SERVICES.format(files=files, lines=lines)
