"""Reading the configuration: the command line over `PERFDIFF_*` over the file over the defaults of `config`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfdiff import units
from perfdiff.config import (
    BuildConfig,
    CacheConfig,
    ClusterConfig,
    CompareConfig,
    Config,
    CountersConfig,
    MeasureConfig,
    ProbeConfig,
    ServiceConfig,
    ServiceLink,
    WorkloadConfig,
)
from perfdiff.configuration import (
    budgets,
    buildsystem,
    recognition,
    services,
    settings,
    suites,
    tomlfile,
    workloads,
)
from perfdiff.configuration.checking import COMMAND_LINE, check_keys, checked, checked_table, nearest, tables
from perfdiff.configuration.links import links, require_services, swept
from perfdiff.configuration.overrides import Overrides
from perfdiff.configuration.tomlfile import Keys, TomlFile
from perfdiff.errors import ConfigError
from perfdiff.languages.frameworks import frameworks, unlisted

FILE = "perfdiff.toml"
PYPROJECT = "pyproject.toml"


def load(
    directory: Path,
    *,
    overrides: Overrides | None = None,
    environment: Mapping[str, str],
    measuring: bool = True,
    changed: Callable[[], Collection[str]] = tuple,
) -> Config:
    """Return the configuration that holds in `directory`, a folder of a checkout.

    The file is the nearest `perfdiff.toml`, or `pyproject.toml` with a table `[tool.perfdiff]`, from `directory` up to the top of the
    checkout. Only for `measuring` must it say what to build and to run, and are input files looked for; else `inputs` stay patterns.
    Where workloads are guessed, they are those of a language whose files `changed` between the revisions, if they can be had.
    Raises `ConfigError` with file, line and key.
    """
    overrides = overrides or Overrides()
    path = overrides.file or _find(directory)
    source = _read(path) if path else None
    if source:
        check_keys(source, source.table, (*settings.SECTIONS, budgets.SECTION, "service", "workload"), ())
    _check_variables(environment)
    place = project(directory, overrides.file)
    offered = tuple(_services(source)) if source else ()
    far = links(overrides.worse)
    read = _ReadProject(source, place, overrides, measuring, _values(source, overrides, environment), offered, far)
    configured = workloads.configured(source, overrides, environment, place, offered, changed)
    if source and (offered or any(workload.services or workload.requests for workload in configured)):
        services.require_places(offered, configured, lambda kind, number: source.place((kind, number)))
        configured = services.served(configured, offered)
    require_services(far, offered)
    if measuring and not configured:
        raise ConfigError(_no_workload(source, place), slug="config-no-workload")
    return _first(read, suites.by_language(swept(configured, far)))


def _values(source: TomlFile | None, overrides: Overrides, environment: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return what is configured by section and key."""
    values = {section: _section(section, source, environment) for section in settings.SECTIONS}
    if overrides.build is not None:
        values["build"]["command"] = checked(overrides.build, settings.BUILD_COMMAND, COMMAND_LINE, "--build")
    if overrides.seed is not None:
        values["compare"]["seed"] = checked(overrides.seed, settings.SEED, COMMAND_LINE, "--seed")
    if overrides.cluster is not None:
        values["cluster"]["address"] = checked(overrides.cluster, settings.ADDRESS, COMMAND_LINE, "--cluster")
    if overrides.time is not None:
        values["measure"]["time"] = checked(settings.parse(settings.TIME, overrides.time), settings.TIME, COMMAND_LINE, "--time")
    if overrides.fast is None:
        values["measure"]["fast"] = False
    elif overrides.fast:
        values["measure"] |= {"fast": True, "thorough": False}
    if overrides.thorough:
        values["measure"]["thorough"] = True
    return values


@dataclass(frozen=True, slots=True)
class _ReadProject:
    """What was read of a project in the folder `place`, but for its workloads: values by section and key, services, and links to these."""

    source: TomlFile | None
    place: Path
    overrides: Overrides
    measuring: bool
    values: Mapping[str, dict[str, Any]]
    services: tuple[ServiceConfig, ...]
    links: tuple[ServiceLink, ...]

    def config(self, chosen: tuple[WorkloadConfig, ...]) -> Config:
        """Return the configuration with these workloads; raise ConfigError where they cannot be run, or nothing says what to build."""
        source, place, values = self.source, self.place, {section: dict(keys) for section, keys in self.values.items()}
        if self.measuring:
            values = suites.asked(values, chosen, place)
            with_inputs = (workloads.with_inputs(workload, source, self.overrides, place) for workload in chosen)
            chosen = tuple(suites.with_command(workload, place) for workload in with_inputs)
        _require_library(values["compare"].get("detector"))
        named = suites.languages(chosen) | {name for name in settings.LANGUAGES if values[name] or (source and name in source.table)}
        programs = recognition.recognised(place, chosen, self.services, named)
        guessed = None
        if self.measuring and not programs.is_ready and "command" not in values["build"]:
            guessed = _guess(place, source, programs)
        values["build"].setdefault("command", guessed.command if guessed else "")
        is_unbuilt = self.measuring and not values["build"]["command"]
        return Config(
            build=BuildConfig(**values["build"]),
            workloads=chosen,
            probes=ProbeConfig(**values["probes"]),
            compare=CompareConfig(**values["compare"]),
            counters=CountersConfig(**values["counters"]),
            measure=MeasureConfig(**{"time_s" if key == "time" else key: value for key, value in values["measure"].items()}),
            cluster=ClusterConfig(**values["cluster"]),
            cache=CacheConfig(**values["cache"]),
            budgets=tuple(budgets.read(source)) if source else (),
            source=str(source.path) if source else None,
            languages={name: language.settings(**values[name]) for name, language in programs.languages.items()},
            services=self.services,
            links=tuple(replace(link, delays_ms=()) for link in self.links),
            build_guessed_from=guessed.file if guessed else programs.sign if is_unbuilt else None,
        )


def _first(project: _ReadProject, choices: Sequence[tuple[WorkloadConfig, ...]]) -> Config:
    """Return the configuration of the first workloads that can be run, with those of the others; raise ConfigError where none can."""
    configs: list[Config] = []
    errors: list[ConfigError] = []
    for choice in choices:
        try:
            configs.append(project.config(choice))
        except ConfigError as error:
            errors.append(error)
    if not configs:
        raise errors[0]
    return replace(configs[0], otherwise=tuple(configs[1:]))


def project(directory: Path, file: Path | None = None) -> Path:
    """Return the folder that builds and workloads run in.

    That is the configuration's own, or the top of the checkout where there is none. A `file` that the user named may lie anywhere;
    then it is `directory`.
    """
    if file:
        return directory
    path = _find(directory)
    return path.parent if path else _top(directory)


def _top(directory: Path) -> Path:
    return next((folder for folder in (directory, *directory.parents) if (folder / ".git").exists()), directory)


def _find(directory: Path) -> Path | None:
    top = _top(directory)
    for folder in (directory, *directory.parents):
        own, shared = folder / FILE, folder / PYPROJECT
        if own.is_file():
            return own
        if shared.is_file() and "[tool.perfdiff" in shared.read_text(encoding="utf-8", errors="replace"):
            return shared
        if folder == top:
            break
    return None


def _read(path: Path) -> TomlFile:
    """Return the file, with `[tool.perfdiff]` of a `pyproject.toml` as if it were all of it."""
    source = tomlfile.read(path)
    if path.name != PYPROJECT:
        return source
    table = source.table.get("tool", {}).get("perfdiff", {})
    return TomlFile(path, table, {keys[2:]: line for keys, line in source.lines.items() if keys[:2] == ("tool", "perfdiff")})


def _section(section: str, source: TomlFile | None, environment: Mapping[str, str]) -> dict[str, Any]:
    section_settings = settings.SECTIONS[section]
    values = checked_table(source, source.table.get(section, {}), section_settings, (section,)) if source else {}
    for key, setting in section_settings.items():
        variable = _variable(section, key)
        if variable in environment:
            values[key] = checked(settings.parse(setting, environment[variable]), setting, "environment", variable)
    return values


def _variable(section: str, key: str) -> str:
    return settings.variable(f"{section}_{key}")


def _check_variables(environment: Mapping[str, str]) -> None:
    variables = [_variable(section, key) for section, keys in settings.SECTIONS.items() for key in keys]
    for name in environment:
        if name not in variables and name.startswith(tuple(_variable(section, "") for section in settings.SECTIONS)):
            raise ConfigError(f"environment: unknown variable {name}{nearest(name, variables)}", slug="config-key")


def _guess(tree: Path, source: TomlFile | None, programs: recognition.Programs) -> buildsystem.BuildSystem:
    """Return the build system of a tree; raise ConfigError where there is none."""
    system = programs.build_system(tree)
    if system is None:
        raise ConfigError(
            f"no build command is configured, and no build system is known by its files in {tree}; "
            f"write in {source.path if source else tree / FILE} what builds the program in a fresh tree, such as:\n\n"
            '[build]\ncommand = "make"',
            slug="config-build",
        )
    return system


def _require_library(detector: str | None) -> None:
    """Raise ConfigError where the detector that is asked for needs a library that a plain installation leaves out."""
    if detector == "autoencoder" and importlib.util.find_spec("torch") is None:
        raise ConfigError(
            "the detector 'autoencoder' needs PyTorch, which is not installed here; run `pip install 'perfdiff[autoencoder]'`, or leave "
            "compare.detector as it is by default",
            slug="no-torch",
        )


def _services(source: TomlFile) -> Iterator[ServiceConfig]:
    services_above: list[ServiceConfig] = []
    for index, table in enumerate(tables(source, "service")):
        keys: Keys = ("service", index)
        services_above.append(services.checked(checked_table(source, table, settings.SERVICE, keys), source.place(keys), services_above))
        yield services_above[-1]


def _no_workload(source: TomlFile | None, place: Path) -> str:
    missing = f"{source.path}: no [[workload]] is configured" if source else f"no {FILE} was found, so there is no workload to run"
    titles = [offered.framework.title for offered in frameworks().values() if not offered.framework.takes_parameters]
    looked = f"the project's files tell of no benchmarks, tests or fuzz targets of {units.listed(titles, len(titles))}"
    given = "perfdiff BASE HEAD --param n=1000,3000,10000 -- ./program {n}"
    return f"{missing}, and {looked}{unlisted(place)}; give a command behind `--`, as in `{given}`, or run `perfdiff init` and fill it in"
