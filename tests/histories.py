"""Histories of a small program as real git repositories: one commit makes it slower, the others are harmless, some do not build."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from programs import git

CONFIGURATION = """\
[build]
command = "make"

[[workload]]
name = "words"
command = "./words {n}"
parameters = { n = [2000, 6000, 18000] }
runs = 10
"""

_MAKEFILE = "CFLAGS ?= -O2 -g\n\nwords: words.c text.c text.h\n\t$(CC) $(CFLAGS) -o $@ words.c text.c\n"

_HEADER = """\
#ifndef TEXT_H
#define TEXT_H
unsigned long checksum(const unsigned char *data, int length);
void scramble(unsigned char *data, int length, unsigned seed);
int unused(int x);
#endif
"""

_MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include "text.h"

int main(int argc, char **argv)
{{
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	unsigned char *data = malloc(n + 1);
	unsigned long total = 0;
	int i;

	if (!data)
		return 1;
	for (i = 0; i < 200; i++) {{
		scramble(data, n, i + {salt}u);
		total ^= checksum(data, n);
	}}
	printf("%lu\\n", total);
	free(data);
	return 0;
}}
"""

_TEXT = """\
#include "text.h"
/* revision {comment} */

unsigned long checksum(const unsigned char *data, int length)
{{
	unsigned long sum = 5381;
	int i;

	for (i = 0; i < length; i++)
		sum = sum * 33 + data[i];
{slower}	return sum;
}}

void scramble(unsigned char *data, int length, unsigned seed)
{{
	int i;

	for (i = 0; i < length; i++) {{
		seed = seed * 1103515245u + {constant}u;
		data[i] = seed >> 16;
	}}
}}

int unused(int x)
{{
	return x + {unused};
}}
{broken}"""

# What the culprit adds to `checksum`, by its effect.
SLOWER = {
    "10 %": "\tfor (i = 0; i < length / 10; i++)\n\t\tsum = sum * 33 + data[i];\n",
    "30 %": "\tfor (i = 0; i < length / 3; i++)\n\t\tsum = sum * 33 + data[i];\n",
    "class": "\tfor (i = 0; i < length; i += 16) {\n\t\tint j;\n\t\tfor (j = 0; j < i; j += 8)\n\t\t\tsum = sum * 33 + data[j];\n\t}\n",
}
KINDS = 5  # of harmless commits


@dataclass(frozen=True, slots=True)
class Plan:
    """A history of `commits` after the good one. Commits are numbered from 1; `harmless[i]` is the kind of the others' change."""

    commits: int
    culprit: int
    effect: str = "30 %"
    broken: Collection[int] = ()
    kinds: tuple[int, ...] = tuple(range(KINDS))


def make(plan: Plan, folder: Path) -> list[str]:
    """Make the repository and return its commits' ids: the good end first, the bad one last, which is tagged `bad` as that is `good`."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "perfdiff.toml").write_text(CONFIGURATION)
    (folder / "Makefile").write_text(_MAKEFILE)
    (folder / "text.h").write_text(_HEADER)
    state = {"salt": 0, "comment": 0, "constant": 12345, "unused": 0}
    commits = [_commit(folder, state, "", broken=False, subject="start")]
    git(folder, "tag", "good")
    slower = ""
    for number in range(1, plan.commits + 1):
        subject = "tidy up"
        if number == plan.culprit:
            slower, subject = SLOWER[plan.effect], "check more"
        else:
            _change(folder, state, plan.kinds[number % len(plan.kinds)], number)
        commits.append(_commit(folder, state, slower, broken=number in plan.broken, subject=f"{subject} {number}"))
    git(folder, "tag", "bad")
    return commits


def _change(folder: Path, state: dict[str, int], kind: int, number: int) -> None:
    """Change something that costs nothing: a comment, the documentation, a function that never runs, one that does, or the data."""
    match kind:
        case 0:
            state["comment"] = number
        case 1:
            (folder / "README.md").write_text(f"Words, {number}.\n")
        case 2:
            state["unused"] = number
        case 3:
            state["salt"] = number
        case _:
            state["constant"] = 12345 + 2 * number


def _commit(folder: Path, state: dict[str, int], slower: str, *, broken: bool, subject: str) -> str:
    (folder / "words.c").write_text(_MAIN.format(salt=state["salt"]))
    text = _TEXT.format(slower=slower, broken="#error not finished\n" if broken else "", **state)
    (folder / "text.c").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject)
    return git(folder, "rev-parse", "HEAD")
