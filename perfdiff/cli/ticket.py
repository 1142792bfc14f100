"""`--ticket DIR`: a folder with all that a ticket needs, which appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff import temporary, units
from perfdiff.errors import UsageError

if TYPE_CHECKING:
    from perfdiff.config import Config
    from perfdiff.fuzzing.families import InputFamily
    from perfdiff.fuzzing.findings import SearchFindings
    from perfdiff.outcome import Outcome
    from perfdiff.progress import Progress
    from perfdiff.report.privacy import Privacy
    from perfdiff.report.ticket import Ticket
    from perfdiff.request import Request
    from perfdiff.revisions.changes import Changes

_LARGEST_PATCH = 1_000_000  # characters; trackers refuse attachments of some megabytes
_NAMED = 5  # files that a line names


def check(folder: Path) -> None:
    """Raise `UsageError` where a ticket must not or cannot be written, before time is spent on measuring."""
    from perfdiff.report.ticket import NAMES, TEXT

    try:
        if folder.exists() or folder.is_symlink():
            names = {entry.name for entry in folder.iterdir()}
            if folder.is_symlink() or not names <= NAMES or (names and TEXT not in names):
                raise UsageError(
                    f"no ticket can be written to '{folder}', which holds something else; name a new folder", slug="ticket-in-the-way"
                )
        with temporary.folder(f".{folder.name}-", within=folder.absolute().parent):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def changes(asked: Request, folder: Path, progress: Progress) -> Changes | None:
    """Return what takes part in the comparison and belongs to no commit, None where that is nothing; the ticket's `folder` does not."""
    from perfdiff import storage
    from perfdiff.revisions import changes
    from perfdiff.revisions.pins import pin_working_tree, split_range
    from perfdiff.revisions.repository import find_repository

    repository, overlay = find_repository(asked.repository), asked.config.build.overlay
    is_of_commits = len(asked.revisions) > 1 or split_range(repository, asked.revisions[0]) is not None
    if repository.top is None or (is_of_commits and not overlay):
        return None
    with storage.in_use(asked.cache, progress):
        pin, _ = pin_working_tree(repository, snapshots=asked.cache / "snapshots", apart=asked.config.own_files(asked.repository))
        return changes.changes(pin, only=overlay if is_of_commits else None, overlay=overlay, without=[folder.resolve()])


def write(folder: Path, outcome: Outcome, asked: Request, uncommitted: Changes | None) -> None:
    """Write the ticket of a comparison; an earlier one in its place is replaced when the new one is complete."""
    from perfdiff.report import ticket

    check(folder)
    try:
        _put(folder.absolute(), ticket.files(_ticket(outcome, asked, uncommitted)))
    except OSError as error:
        raise _unwritable(folder, error) from error


def as_built(config: Config, outcome: Outcome) -> Config:
    """Return the configuration of what was measured: of a guess the one that ran, built with the options that were switched on."""
    built = outcome.experiment.build if outcome.experiment else None
    if built is None or config.build_guessed_from is None:
        return config
    used = next((guess for guess in config.otherwise if guess.build.command == built), config)
    own = replace(config, languages=used.languages, workloads=used.workloads)
    return replace(own, build=replace(used.build, command=built))


def _ticket(outcome: Outcome, asked: Request, uncommitted: Changes | None) -> Ticket:
    from perfdiff import reproduction
    from perfdiff.analysis.telling.minimal import cheapest
    from perfdiff.build.variants import keyed
    from perfdiff.report.printable import with_texts
    from perfdiff.report.privacy import without_hosts
    from perfdiff.report.ticket import Ticket
    from perfdiff.revisions.repository import find_repository

    asked = replace(asked, config=as_built(asked.config, outcome))
    private = _privacy(outcome, asked, uncommitted)
    hosts = [machine.name for machine in outcome.experiment.machines] if outcome.experiment else []
    findings = with_texts(without_hosts(outcome.findings, hosts), private)
    whole = uncommitted.patch if uncommitted and len(uncommitted.patch) <= _LARGEST_PATCH else ""
    patch = private(whole)
    attached = reproduction.Attachment(uncommitted.commit, altered=patch != whole) if uncommitted and patch else None
    again = reproduction.ComparisonOrder(
        base=findings.base,
        head=findings.head,
        folder=private(find_repository(asked.repository).folder.as_posix()),
        config=with_texts(asked.config, private),
        variables=with_texts(keyed(asked.environment), private),
        attached=attached,
        missing=with_texts(tuple(_missing(uncommitted)), private) if uncommitted else (),
    )
    shown, drawn = cheapest(findings), outcome.drawn
    searched, inputs = _searched(outcome.inputs, private) if outcome.inputs else (None, {})
    return Ticket(
        findings=findings,
        samples=lambda function, side: with_texts(drawn(function, side), private),
        script=reproduction.script(again),
        variables=again.variables,
        shown=shown,
        at_point=reproduction.at_point(again, shown.point) if shown else None,
        patch=patch,
        consequences=with_texts(outcome.consequences, private),
        searched=searched,
        inputs=inputs,
    )


def _searched(searched: SearchFindings, private: Callable[[str], str]) -> tuple[SearchFindings, dict[str, bytes]]:
    """Return what a search found, its files as they lie in the ticket, and their contents; files that hold what is private stay out."""
    from perfdiff.report.printable import with_texts
    from perfdiff.report.ticket import INPUTS

    inputs: dict[str, bytes] = {}
    public = []
    for shown in searched.inputs:
        contents = {times: path.read_bytes() for times, path in shown.files.items()}
        texts = {times: content.decode("latin-1") for times, content in contents.items()}
        open_to_all = {times: path for times, path in shown.files.items() if private(texts[times]) == texts[times]}
        inputs |= {path.name: contents[times] for times, path in open_to_all.items()}
        files = {times: Path(INPUTS) / path.name for times, path in open_to_all.items()}
        workload = replace(shown.workload, inputs=tuple(path.as_posix() for path in files.values()))
        entry = replace(shown.entry, family=_without_secrets(shown.entry.family, private))
        public.append(replace(shown, entry=entry, workload=workload, files=files))
    mishaps = (replace(mishap, file=None, family=_without_secrets(mishap.family, private)) for mishap in searched.mishaps)
    return with_texts(replace(searched, inputs=tuple(public), mishaps=tuple(mishaps)), private), inputs


def _without_secrets(family: InputFamily, private: Callable[[str], str]) -> InputFamily:
    segments = (replace(segment, text=private(segment.text.decode("latin-1")).encode("latin-1", "replace")) for segment in family.segments)
    return replace(family, segments=tuple(segments))


def _missing(uncommitted: Changes) -> Iterator[str]:
    if len(uncommitted.patch) > _LARGEST_PATCH:
        yield f"uncommitted changes on {uncommitted.commit}, whose patch has {units.size(len(uncommitted.patch))}"
    for says, files in (("files that are no text", uncommitted.binary), ("files that git ignores", uncommitted.ignored)):
        if files:
            yield f"{says}: {units.listed(files, _NAMED)}"


def _privacy(outcome: Outcome, asked: Request, uncommitted: Changes | None) -> Privacy:
    """Return what is private here: no variable's value is written but those that builds depend on."""
    from perfdiff.build.variants import keyed
    from perfdiff.report.printable import texts
    from perfdiff.report.privacy import learn

    public = keyed(asked.environment)
    others = {name: value for name, value in asked.environment.items() if name not in public}
    commands = [*asked.config.commands, *(point.command for point in outcome.findings.points), *public.values()]
    commits = [revision.commit for revision in (outcome.findings.base, outcome.findings.head) if revision.commit]
    shown = texts((outcome.findings, asked.config, uncommitted.patch if uncommitted else ""))
    return learn(others, commands, home=str(Path.home()), public=commits, texts=[*shown, *public.values()])


def _put(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    room = temporary.make(f".{folder.name}-", within=folder.parent)
    fresh, replaced = room / "new", room / "replaced"
    try:
        for name, content in files:
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).write_bytes(content)
        if folder.exists():
            folder.rename(replaced)
        fresh.rename(folder)
    finally:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        temporary.remove(room)


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"a ticket cannot be written to '{folder}': {error.strerror}", slug="output-unwritable")
