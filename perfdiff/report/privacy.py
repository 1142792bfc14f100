"""Removal of private data from reports: secrets of known forms, names of hosts, and paths of home folders."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from perfdiff.analysis.findings import Findings, Ratio
from perfdiff.records.schema import Note
from perfdiff.report import secret_forms, secret_spellings
from perfdiff.report.printable import with_texts
from perfdiff.report.secret_commands import in_commands
from perfdiff.report.secret_forms import HIDDEN
from perfdiff.report.secret_names import ENVIRONMENT
from perfdiff.report.secret_spellings import LEAST, Spellings, in_place, spellings
from perfdiff.report.secret_tokens import TOKEN

_LEAST_LETTERS = 5  # different ones; fewer are `******` and `xxx1`, which hold a secret's place
# Values that look drawn at random, whatever their variable is called; a path is none.
_SECRET_SHAPE = re.compile(r"(?!/)(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w+/=.-]{20,}")
# Where a path begins, which may be directly behind an option such as -I, and where the part of it that is a home ends.
_BEGINS, _ENDS = r"(?:(?<![\w.~-])|(?<=-[A-Z]))", r"(?=$|[/\s:'\",;)\]}])"
_HOME = re.compile(rf"{_BEGINS}(?:/home/[^/\s:'\",;)\]}}]+|/Users/[^/\s:'\",;)\]}}]+|/root){_ENDS}")


@dataclass(frozen=True, slots=True)
class Privacy:
    """Takes out of a text what is private. `secrets` are with what stands in their place, the longest first; `home` is the user's."""

    secrets: tuple[tuple[Spellings, str], ...]
    home: str

    def __call__(self, text: str) -> str:
        """Return the text without what is known or looks like a secret, however it is written, and with every home as `~`."""
        for secret, instead in self.secrets:
            text = secret.replaced(text, instead)
        text = secret_forms.without_known(text)
        if self.home not in ("", "/"):
            text = re.sub(rf"{_BEGINS}{re.escape(self.home)}{_ENDS}", "~", text)
        return _HOME.sub("~", text)


def learn(
    variables: Mapping[str, str], commands: Iterable[str], *, home: str, public: Collection[str] = (), texts: Iterable[str] = ()
) -> Privacy:
    """Return what is private where these variables are set, these commands are run and these texts are told; texts in `public` are not.

    A variable's secret is replaced by `$` and its name, which the shell of who knows it understands; all others by `…`: what stands in a
    command or in a known form in a text, and each line of a secret that has several. What is no more than a word is hidden where it stands.
    """
    commands = tuple(commands)
    given = [*in_commands(commands)]
    words = {(before, secret) for before, secret in given if before and not _is_drawn(secret)}
    wholes = {**dict.fromkeys((secret for before, secret in given if (before, secret) not in words), HIDDEN), **_in_variables(variables)}
    shown = [*texts, *commands, *variables.values()]
    in_forms = {meant for text in shown for secret in secret_forms.in_text(text) for meant in secret_spellings.plain(secret)}
    parts = (line for secret in (*wholes, *in_forms) for line in secret_spellings.lines(secret))
    instead = {**dict.fromkeys((*parts, *filter(_is_drawn, in_forms)), HIDDEN), **wholes}
    secrets = {secret: said for secret, said in instead.items() if len(secret) >= LEAST and secret not in public}
    in_places = [(in_place(before, secret), f"{before}{HIDDEN}") for before, secret in sorted(words) if len(secret) >= LEAST]
    wherever = [(spellings(secret), said) for secret, said in sorted(secrets.items(), key=lambda item: (-len(item[0]), item))]
    return Privacy((*wherever, *in_places), home.rstrip("/"))


def without_hosts(findings: Findings, hosts: Iterable[str] = ()) -> Findings:
    """Return findings in which the names of machines, and of other `hosts`, are replaced by `machine 1` and so on.

    Kinds of machines are named by what they are, not by a host. Sources and commands, in which such a name may be any word, stay.
    """
    names = [*dict.fromkeys([*(part.name for part in findings.machines if part.hosts == 1), *hosts])]
    if not names:
        return findings
    instead = {name: f"machine {number}" for number, name in enumerate(names, 1)}
    pattern = re.compile(
        r"(?<![\w.-])(?:" + "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) + r")(?![\w-]|\.\w)"
    )

    def hide(text: str) -> str:
        return pattern.sub(lambda match: instead[match.group()], text)

    def renamed(ratios: Mapping[str, Ratio]) -> dict[str, Ratio]:
        return {instead.get(name, name): ratio for name, ratio in ratios.items()}

    functions = tuple(
        replace(
            finding,
            reason=with_texts(finding.reason, hide),
            happened=with_texts(finding.happened, hide),
            also=with_texts(finding.also, hide),
            machines_say=with_texts(finding.machines_say, hide),
            metrics={name: replace(metric, machines=renamed(metric.machines)) for name, metric in finding.metrics.items()},
        )
        for finding in findings.functions
    )
    return replace(
        findings,
        sentence=with_texts(findings.sentence, hide),
        notes=tuple(replace(note, text=hide(note.text)) if isinstance(note, Note) else with_texts(note, hide) for note in findings.notes),
        functions=functions,
        end_to_end=tuple(replace(end, machines=renamed(end.machines)) for end in findings.end_to_end),
        machines=tuple(replace(part, name=instead.get(part.name, part.name)) for part in findings.machines),
    )


def _in_variables(variables: Mapping[str, str]) -> dict[str, str]:
    return {
        value: f"${name}"
        for name, value in sorted(variables.items())
        if ENVIRONMENT.search(name) or _SECRET_SHAPE.fullmatch(value) or TOKEN.search(value)
    }


def _is_drawn(secret: str) -> bool:
    """Return whether what a text has in a secret's place is no word, so that the same text elsewhere is the secret as well."""
    is_mixed = re.search(r"\d", secret) or re.search(r"[^\w\s.-]", secret)
    return bool(is_mixed) and bool(re.search(r"[A-Za-z]", secret)) and len(set(secret)) >= _LEAST_LETTERS
