"""A small program as a real history, by counts of its lines: one commit makes a list's `append` walk to its tail, others are harmless."""

from __future__ import annotations

from pathlib import Path

from programs import git

CONFIGURATION = """\
[build]
command = "gcc -O1 -g -o list list.c"

[[workload]]
name = "list"
command = "./list {n}"
parameters = { n = [40, 80, 160, 320, 640] }
"""

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>

struct node { struct node *next; int value; };
struct list { struct node *head, *tail; };

static void append(struct list *list, int value)
{
	struct node *node = calloc(1, sizeof *node);

	node->value = value;
	if (!list->head)
		list->head = node;
	else
		list->tail->next = node;
	list->tail = node;
}

static long sum(const struct list *list)
{
	long total = 0;

	for (struct node *node = list->head; node; node = node->next)
		total += node->value;
	return total;
}

int main(int argc, char **argv)
{
	struct list list = { NULL, NULL };
	int count = argc > 1 ? atoi(argv[1]) : 10;

	for (int i = 0; i < count; i++)
		append(&list, i);
	printf("%ld\\n", sum(&list));
	return 0;
}
"""

POINTING = "\telse\n\t\tlist->tail->next = node;\n\tlist->tail = node;\n"
WALKING = """\
	else {
		struct node *last = list->head;

		while (last->next)
			last = last->next;
		last->next = node;
	}
"""
CULPRIT = "keep no tail"

# What each commit after the first replaces, and by what, by its subject.
_Change = tuple[tuple[str, str], ...]
CHANGES: dict[str, _Change] = {
    "sum in other words": (("total += node->value", "total = total + node->value"),),
    "rename": (("append(", "push_back("),),
    "not finished": (("#include <stdio.h>\n", "#include <stdio.h>\n#error not finished\n"),),
    "finished": (("#error not finished\n", ""),),
    "document": (),
    CULPRIT: ((POINTING, WALKING),),
    "another default": (("atoi(argv[1]) : 10", "atoi(argv[1]) : 20"),),
}


def make(folder: Path) -> dict[str, str]:
    """Make the repository and return its commits by subject, `start` and those of `CHANGES`; the ends are tagged `good` and `bad`."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "perfdiff.toml").write_text(CONFIGURATION)
    text = PROGRAM
    commits = {"start": _commit(folder, text, "start")}
    git(folder, "tag", "good")
    for subject, changes in CHANGES.items():
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        (folder / "README.md").write_text(f"A list. {subject.capitalize()}.\n")
        commits[subject] = _commit(folder, text, subject)
    git(folder, "tag", "bad")
    return commits


def _commit(folder: Path, text: str, subject: str) -> str:
    (folder / "list.c").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", subject)
    return git(folder, "rev-parse", "HEAD")
