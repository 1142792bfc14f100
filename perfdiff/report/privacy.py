"""What must not leave the machine with a report: secrets in their known forms, and where people's homes lie."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from perfdiff.report import secret_forms

# Shorter values occur in ordinary text by chance.
_LEAST = 6
# Names of variables that hold secrets; of `GIT_AUTHOR_NAME` and its like nothing is hidden.
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH(?!OR)|COOKIE|API_?KEY|ACCESS_?KEY|PRIVATE|_KEY$|_KEY_ID$|_PAT$|_PWD$|_DSN$",
    re.IGNORECASE,
)
# Values that look drawn at random, whatever their variable is called; a path is none.
_SECRET_SHAPE = re.compile(r"(?!/)(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w+/=.-]{20,}")
# Where a path begins, which may be directly behind an option such as -I, and where the part of it that is a home ends.
_BEGINS, _ENDS = r"(?:(?<![\w.~-])|(?<=-[A-Z]))", r"(?=$|[/\s:'\",;)\]}])"
_HOME = re.compile(rf"{_BEGINS}(?:/home/[^/\s:'\",;)\]}}]+|/Users/[^/\s:'\",;)\]}}]+|/root){_ENDS}")


@dataclass(frozen=True, slots=True)
class Privacy:
    """Takes out of a text what is private. `secrets` are texts with what stands in their place, the longest first; `home` is the user's."""

    secrets: tuple[tuple[str, str], ...]
    home: str

    def __call__(self, text: str) -> str:
        """Return the text without what is known or looks like a secret, and with every home as `~`."""
        for secret, instead in self.secrets:
            text = text.replace(secret, instead)
        text = secret_forms.without_known(text)
        if self.home not in ("", "/"):
            text = re.sub(rf"{_BEGINS}{re.escape(self.home)}{_ENDS}", "~", text)
        return _HOME.sub("~", text)


def learn(variables: Mapping[str, str], commands: Iterable[str], *, home: str, known: Collection[str] = ()) -> Privacy:
    """Return what is private where these variables are set and these commands are run; texts in `known` are not.

    A variable's secret is replaced by `$` and its name, which the shell of who knows it understands; one that stands in a command by `…`.
    """
    found = {**dict.fromkeys(secret_forms.in_commands(commands), secret_forms.HIDDEN), **_in_variables(variables)}
    secrets = {secret: instead for secret, instead in found.items() if len(secret) >= _LEAST and secret not in known}
    return Privacy(tuple(sorted(secrets.items(), key=lambda item: (-len(item[0]), item))), home.rstrip("/"))


def _in_variables(variables: Mapping[str, str]) -> dict[str, str]:
    return {
        value: f"${name}"
        for name, value in sorted(variables.items())
        if _SECRET_NAME.search(name) or _SECRET_SHAPE.fullmatch(value) or secret_forms.TOKEN.search(value)
    }
