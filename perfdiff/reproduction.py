"""What somebody else needs to measure a comparison again: its configuration and its commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from perfdiff import units
from perfdiff.config import CacheSize, Config, WorkloadConfig
from perfdiff.configuration import settings, tomlfile
from perfdiff.records.schema import Point, Revision

FILE = "perfdiff-ticket.toml"
PATCH = "changes.patch"
_WORKTREE = "checkout"
_END = "END_OF_CONFIGURATION"
_NAMED = 5  # input files that a comment names
# Known costs lie in a file of their own, which is not part of what is measured.
_LEFT_OUT = {("build", "chosen_targets"), ("compare", "accepted"), ("workload", "suite"), ("workload", "left_out")}


@dataclass(frozen=True, slots=True)
class Attachment:
    """The file PATCH beside the script: how the checkout differed from `commit`. `altered`: what was private was taken out of it."""

    commit: str
    altered: bool = False


@dataclass(frozen=True, slots=True)
class ComparisonOrder:
    """A comparison as it was asked for: both revisions, the folder of the checkout it ran in, and variables that builds depend on.

    `attached` is what belongs to no commit, None where there is nothing; `missing` says what is not attached of that.
    """

    base: Revision
    head: Revision
    folder: str
    config: Config
    variables: Mapping[str, str]
    attached: Attachment | None = None
    missing: tuple[str, ...] = ()


def script(order: ComparisonOrder) -> str:
    """Return a shell script that writes the configuration and compares again."""
    where = f"the folder {order.folder} of a checkout" if order.folder not in ("", ".") else "a checkout"
    parts = [
        "#!/bin/sh",
        _comment(f"In {where} of the project that has these commits. Leaves {FILE} there."),
        *_missing(order),
        *(_applied(order.folder, order.attached) if order.attached else ()),
        f"cat > {FILE} <<'{_END}'\n{configuration_text(order.config)}{_END}",
        command(order),
    ]
    return "\n".join(parts) + "\n"


def command(order: ComparisonOrder) -> str:
    """Return the command that compares again, with revisions pinned to commits."""
    variables = [f"{name}={_quoted(value)}" for name, value in order.variables.items()]
    revisions = [revision.commit for revision in (order.base, order.head) if revision.commit]
    return " ".join([*variables, "perfdiff", *revisions, "--config", FILE])


def at_point(order: ComparisonOrder, point: Point) -> str | None:
    """Return the command that compares at one point, None where its values cannot be written on a command line."""
    values = {name: str(value) for name, value in point.parameters.items()}
    if any(settings.parameter_values(text) != (point.parameters[name],) for name, text in values.items()):
        return None
    given = [f"--param {_word(f'{name}={text}')}" for name, text in values.items()]
    return " ".join([command(order), "--workload", _word(point.workload), *given])


def _comment(text: str) -> str:
    return "\n".join(f"# {_visible(line, '?')}" for line in re.split(r"[\r\n]+", text))


def _word(text: str) -> str:
    """Return a text as a word of the shell that shows what it holds, its control characters as printf writes them."""
    return _visible(shlex.quote(text), "'\"$(printf '{octal}')\"'")


def _visible(text: str, instead: str) -> str:
    """Return a text with something in place of each character that is not printable, which may tell its bytes by octal numbers."""
    return "".join(
        letter
        if letter.isprintable() or letter in "\t\n"
        else instead.replace("{octal}", "".join(f"\\{byte:03o}" for byte in letter.encode(errors="surrogateescape")))
        for letter in text
    )


def _missing(order: ComparisonOrder) -> Iterator[str]:
    for name, revision in (("base", order.base), ("head", order.head)):
        if revision.commit is None:
            yield _comment(f"{name} was the working tree, {revision.summary}{'' if order.attached else ': check that out first'}.")
    if order.config.build.overlay and order.attached is None:
        yield _comment(f"What is laid over both revisions must lie there: {', '.join(order.config.build.overlay)}")
    inputs = sorted({name for workload in order.config.workloads for name in workload.inputs})
    if inputs:
        listed = units.listed(inputs, _NAMED)
        yield _comment(f"Input files are those of the checkout, whatever its commit; they must lie there: {listed}")
    files = sorted({workload.requests.file for workload in order.config.workloads if workload.requests})
    if files:
        yield _comment(
            f"Files of requests are those of the checkout, whatever its commit; they must lie there: {units.listed(files, _NAMED)}"
        )
    for text in order.missing:
        yield _comment(f"Not attached: {text}")


def _applied(folder: str, attached: Attachment) -> Iterator[str]:
    """Yield what makes a checkout beside the script that holds what belongs to no commit."""
    yield _comment(f"What belongs to no commit is in {PATCH}, which is applied to a worktree of its own beside this script: {_WORKTREE}")
    if attached.altered:
        yield _comment(f"Secrets or homes were taken out of {PATCH}: lines that held them may not apply, or mean something else.")
    inside = f"/{folder}" if folder not in ("", ".") else ""
    yield "set -e"
    yield 'ticket=$(cd "$(dirname "$0")" && pwd)'
    yield f'git worktree add --detach "$ticket/{_WORKTREE}" {attached.commit}'
    yield f'git -C "$ticket/{_WORKTREE}" apply "$ticket/{PATCH}"'
    yield f'cd "$ticket/{_WORKTREE}"{_word(inside)}' if inside else f'cd "$ticket/{_WORKTREE}"'


def _quoted(value: str) -> str:
    """Quote for the shell, but let it find the home of who runs this."""
    return _word(value).replace("~/", "'\"$HOME\"'/") if "~/" in value else _word(value)


def configuration_text(config: Config) -> str:
    """Return a configuration as TOML that means the same, without what is as by default, and without machines to measure on."""
    sections: dict[str, object] = {
        "build": config.build,
        **config.languages,
        "probes": config.probes,
        "compare": config.compare,
        "counters": config.counters,
        "measure": config.measure,
    }
    texts = {name: _keys(name, values) for name, values in sections.items()}
    # An empty table of a language says that programs are written in it.
    parts = [f"[{name}]\n{text}".rstrip() for name, text in texts.items() if text or name in config.languages]
    parts += [f"[[service]]\n{_keys('service', service)}" for service in config.services]
    parts += [f"[[workload]]\n{_workload(workload)}" for workload in config.workloads]
    return "\n\n".join(parts) + "\n"


def _workload(workload: WorkloadConfig) -> str:
    if workload.requests is not None:
        return f"requests = {_value(workload.requests.file)}\n{_keys('workload', replace(workload, command='', requests=None))}"
    if workload.suite is None:
        return _keys("workload", workload)
    return f"{workload.suite.kind} = {_value(workload.suite.what)}\n{_keys('workload', replace(workload, command=''))}"


def _keys(section: str, values: Any) -> str:
    """Return the lines of a section's keys, such as differ from the default, and those that the reader asks for first."""
    asked_for = {"runs", "seed"}
    lines = []
    for field in fields(values):
        value = getattr(values, field.name)
        differs = value not in (None, {}, "") and value != field.default
        if (section, field.name) not in _LEFT_OUT and (differs or field.name in asked_for):
            lines.append(f"{field.name} = {_value(value)}")
    return "\n".join(lines)


def _value(value: object) -> str:
    match value:
        case CacheSize():
            return tomlfile.written(f"{value.size // 2**10} KiB/{value.ways}")
        case Mapping():
            return f"{{ {', '.join(f'{tomlfile.written(key)} = {tomlfile.written(item)}' for key, item in value.items())} }}"
        case _:
            return tomlfile.written(value)
