"""The programs that figures are measured on: every fixture, programs of tiny functions, and the real input with both of its workloads.

Those of a `language` are C's, C++'s among them, Python's, Java's, PHP's, or those behind a `server`.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import tomllib
from pathlib import Path

import cmark
import programs
from perfdiff import configuration
from perfdiff.config import Config
from perfdiff.request import Request
from studies import FIXTURES

TINY = FIXTURES / "overhead"
MOVED = "moved"  # the tag of base with its code in other places
# of the programs in other languages than C, and of those behind a server
FOLDERS = {"python": programs.PYTHON, "java": programs.JAVA, "php": programs.PHP, "server": programs.SERVER}
LANGUAGES = ("c", *FOLDERS)
MOST_BYTES, STEP = 512, 8  # that code moves by; several lines, and every place within one
NO_WORD = r"\W"
MOST_LINES = 40  # of a function in Python that does so
REAL = {"cmark links": cmark.ATTACK, "cmark paragraphs": cmark.PARAGRAPHS}


def names(language: str = "c") -> list[str]:
    """Return the names of all programs in which something is found, or nothing is to be found."""
    if language in FOLDERS:
        return [case.name for case in programs.cases(FOLDERS[language])]
    return [*(case.name for case in programs.cases()), *REAL]


def request(name: str, room: Path, *revisions: str, language: str = "c") -> Request:
    """Return a comparison of a program; its repository is made in `room`, which also holds the cache, where it is not there yet."""
    if name in REAL:
        made = room / "cmark" / "repository"
        checkout = made if made.exists() else cmark.repository(made.parent)
        config = Config(cmark.BUILD, (REAL[name],))
    elif (TINY / name.split(maxsplit=1)[0]).is_dir():
        checkout = room / name.replace(" ", "-")
        if not checkout.exists():
            program, change = name.split()
            _changed(program, change, checkout)
        config = configuration.load(checkout, environment={})
    else:
        case = next(case for case in programs.cases(FOLDERS.get(language, programs.PROGRAMS)) if case.name == name)
        checkout = room / name
        if not checkout.exists():
            programs.repository(case, checkout)
        config = configuration.load(checkout, environment={})
    return Request(
        checkout, revisions, config, room / "cache", programs.environment() if "python" in config.languages else dict(os.environ)
    )


def _changed(program: str, change: str, checkout: Path) -> None:
    """Make `checkout` a repository of a program of tiny functions, tagged `base`, and of one change to it, tagged `head`."""
    shutil.copytree(TINY / program, checkout, copy_function=shutil.copyfile)
    edit = tomllib.loads((checkout / "changes.toml").read_text())[change]
    source = checkout / edit["file"]
    programs.git(checkout, "init", "-q")
    for side in ("base", "head"):
        if side == "head":
            text = source.read_text()
            assert text.count(edit["find"]) == 1, f"{program}: {change} is one change"
            source.write_text(text.replace(edit["find"], edit["replace"]))
        programs.git(checkout, "add", "-A")
        programs.git(checkout, "commit", "-q", "-m", f"{program}: {side}")
        programs.git(checkout, "tag", side)


def move(checkout: Path) -> None:
    """Tag a revision of base with a function of random length, never called, in each source; nothing where there is one.

    It stands at the top, in Python at the end, as docstrings and imports of the future come first, in Java in the last class of a file,
    in PHP at the end.
    """
    if MOVED in programs.git(checkout, "tag").split():
        return
    rng = random.Random(checkout.name)
    programs.git(checkout, "checkout", "-q", "--detach", "base")
    for name in programs.git(checkout, "ls-files").splitlines():
        path = checkout / name
        if path.suffix in MOVES:
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            path.write_text(MOVES[path.suffix](text, rng, name), encoding="utf-8", errors="surrogateescape")
    programs.git(checkout, "commit", "-qam", "moved")
    programs.git(checkout, "tag", MOVED)
    programs.git(checkout, "checkout", "-q", "-")


def _moved_c(text: str, rng: random.Random, _name: str) -> str:
    room = f'__asm__ volatile(".zero {rng.randrange(STEP, MOST_BYTES, STEP)}");'
    return f"__attribute__((used)) static void moves_code(void) {{ {room} }}\n{text}"


def _moved_python(text: str, rng: random.Random, _name: str) -> str:
    return f"{text}\n\ndef moves_code():\n{_lines(rng, '    moved = {}')}"


def _moved_java(text: str, rng: random.Random, _name: str) -> str:
    end = text.rstrip().removesuffix("}")  # of the last class
    return f"{end}\n    static void movesCode() {{\n        int moved;\n{_lines(rng, '        moved = {};')}    }}\n}}\n"


def _moved_php(text: str, rng: random.Random, name: str) -> str:
    return f"{text}\nfunction moves_code_{re.sub(NO_WORD, '_', name)}(): void\n{{\n{_lines(rng, '    $moved = {};')}}}\n"


def _lines(rng: random.Random, line: str) -> str:
    return "".join(f"{line.format(number)}\n" for number in range(rng.randrange(1, MOST_LINES)))


MOVES = dict.fromkeys((".c", ".cc", ".cpp", ".cxx"), _moved_c) | {".py": _moved_python, ".java": _moved_java, ".php": _moved_php}
