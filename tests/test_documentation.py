"""The documentation and the command line say the same: every command and option is documented, and none is that does not exist."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from perfdiff.analysis.verdicts.conclusion import PROGRAM_RULES, RESERVATIONS
from perfdiff.analysis.verdicts.ruling import JOINT_RULES
from perfdiff.analysis.verdicts.verdict import RULES
from perfdiff.cli import COMMANDS, COMPARISON, command_of
from perfdiff.cli.whole import Command, command, commands
from perfdiff.configuration.settings import SECTIONS
from studies.support import catalogue

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OURS = re.compile(
    r"(?:perfdiff|scripts|studies|tests|fixtures|docs)/[a-z0-9_./-]+|[a-z0-9_]+(?:/[a-z0-9_]+)+\.(?:py|c|h)"
)  # of what is cited by its path
STUDIES = set(catalogue.names())
MOST_LINES = 150  # of a page that is read first
MOST_WORDS = 1_500  # of the roadmap
MOST_WORDS_IN_ALL = 60_000  # of all pages for users: what is shortened stays so
THEIRS = {"benchmarks/hostile.py", "benchmarks/read.py", "perf/array.c", "corpus/a.c", "fuzz/parse.c"}  # files of the examples' projects


def _manual() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manual", ROOT / "scripts" / "manual.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["manual"] = module
    spec.loader.exec_module(module)
    return module


manual = _manual()


def spoken(text: str) -> Iterator[str]:
    """Yield the commands that a document shows: lines of code blocks and inline code that begin with `perfdiff`."""
    for language, block in FENCE.findall(text):
        if language in {"", "sh", "console", "yaml", "shell", "bash"}:
            for line in block.splitlines():
                start = re.search(r"(?:^|[|&;$(] *|run: +|- +)perfdiff(?= )", line)
                if start:
                    yield line[start.end() - len("perfdiff") :]
    for code in re.findall(r"`(perfdiff [^`]+)`", FENCE.sub("", text)):
        yield " ".join(code.split())


def known_options(each: Command) -> set[str]:
    """Return the options of a command and of the commands below it."""
    found = {name for parameter in each.params for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")}
    for below in getattr(each, "commands", {}).values():
        found |= known_options(below)
    return found | {"-h", "--help"}


def unknown_options(line: str) -> list[str]:
    """Return the options of a shown command that do not exist; what stands behind `--` belongs to the workload."""
    own, _, behind = line.partition(" -- ")
    words = re.split(r"[|&;#]|\)$", own)[0].split()[1:]
    name, words = command_of(words, behind.split())
    given = [word.strip("[](),.…").partition("=")[0] for word in words]
    return [word for word in given if re.match(r"--?[a-zA-Z]", word) and word not in known_options(command(name))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_shown_commands_have_only_options_that_exist(document: Path) -> None:
    lines = list(spoken(document.read_text(encoding="utf-8")))
    assert [(line, options) for line in lines if (options := unknown_options(line))] == []


def test_a_wrong_option_would_be_seen() -> None:
    text = (
        "Run `perfdiff log f --sinse v1`.\n```sh\nperfdiff a b --formt json -- ./x --any  # why\ncd x && perfdiff check f --strict\n```\n"
    )
    lines = list(spoken(text))
    assert [unknown_options(line) for line in lines] == [["--formt"], [], ["--sinse"]]


def inline(text: str) -> list[str]:
    """Return the inline code of a document."""
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


@cache
def ends() -> frozenset[str]:
    """Return the paths of all files of this repository, and each end of one that begins with a name."""
    files = [path for folder in ("perfdiff", "scripts", "studies", "tests", "fixtures", "docs") for path in (ROOT / folder).rglob("*")]
    parts = [path.relative_to(ROOT).parts for path in files]
    return frozenset("/".join(names[start:]) for names in parts for start in range(len(names)))


def missing_files(text: str) -> list[str]:
    """Return the files of this repository that a document cites, by their path or the end of it, and that are not there."""
    cited = [code.rstrip("/") for code in inline(text) if OURS.fullmatch(code) and code not in THEIRS]
    return [path for path in cited if path not in ends()]


def unknown_keys(text: str) -> list[str]:
    """Return the keys that a document names, as `[section] key` or `PERFDIFF_SECTION_KEY`, and that do not exist."""
    named = [match.groups() for code in inline(text) if (match := re.match(r"\[(\w+)\] (\w+)", code))]
    named += [(section.lower(), key.lower()) for section, key in re.findall(r"PERFDIFF_([A-Z]+)_([A-Z_]+)", text)]
    return [f"{section}.{key}" for section, key in named if section in SECTIONS and key not in SECTIONS[section]]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_cited_files_benches_and_keys_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert missing_files(text) == []
    assert unknown_keys(text) == []
    assert set(re.findall(r"scripts/bench ([a-z_]+)", text)) - STUDIES == set()


def test_a_dead_file_or_key_would_be_seen() -> None:
    text = (
        "`perfdiff/no_such.py`, `cli/whole.py`, `sums/no_such.py`, `[measure] budget_s`, `[measure] bugdet_s = 3`, `PERFDIFF_COMPARE_FRD=1`"
    )
    assert missing_files(text) == ["perfdiff/no_such.py", "sums/no_such.py"]
    assert unknown_keys(text) == ["measure.bugdet_s", "compare.frd"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def dead_links(text: str) -> list[str]:
    """Return the links of a page at the top of the repository whose file, or whose heading in it, is not there."""
    links = [link.partition("#")[::2] for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)) if "://" not in link]
    return [
        f"{path}#{heading}" for path, heading in links if not (ROOT / path).exists() or (heading and heading not in anchors(ROOT / path))
    ]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_pages_outside_of_the_site_hold(name: str) -> None:
    assert dead_links((ROOT / name).read_text(encoding="utf-8")) == []


def test_a_dead_link_would_be_seen() -> None:
    text = "[a](docs/report.md#peak-memory) [b](docs/report.md#no-such) [c](docs/no-such.md) [d](docs/howto/) [e](https://example.org/x)"
    assert dead_links(text) == ["docs/report.md#no-such", "docs/no-such.md#"]


def test_pages_that_sources_scripts_and_studies_name_exist() -> None:
    files = [
        path
        for folder in ("perfdiff", "scripts", "studies")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".c", ".h", ""}
    ]
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file()}
    named = [(path, page) for path, text in texts.items() for page in re.findall(r"\bdocs/[a-z0-9/-]+\.md\b", text)]
    assert len(named) > 10
    assert [(path, page) for path, page in named if not (ROOT / page).is_file()] == []


def test_pages_that_are_read_first_are_short() -> None:
    lines = {name: (ROOT / name).read_text(encoding="utf-8").count("\n") for name in ("README.md", "docs/figures.md", "docs/accuracy.md")}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}, "what is behind a figure belongs to docs/studies"
    assert len((ROOT / "docs" / "roadmap.md").read_text(encoding="utf-8").split()) <= MOST_WORDS, (
        "what was tried belongs to docs/studies/tried.md"
    )


def test_documents_for_users_grow_no_longer() -> None:
    others = ("studies", "cases.md", "architecture", "architecture.md")  # read by those who doubt, and by those who change it
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.relative_to(ROOT / "docs").parts[0] not in others]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    assert words <= MOST_WORDS_IN_ALL, "say it once; derivations, histories and figures belong to docs/studies"


def test_the_reference_is_what_the_commands_say_of_themselves() -> None:
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == manual.markdown(), "run scripts/reference"
    assert (ROOT / "perfdiff" / "cli" / "pages" / "perfdiff.1").read_text(encoding="utf-8") == manual.roff(), "run scripts/reference"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_the_comparison_and_the_readme_or_docs_name_every_command(name: str) -> None:
    comparison = command(COMPARISON)
    assert f"  perfdiff {name} " in f"{comparison.epilog} "
    others = [document for document in DOCUMENTS if document.name != "commands.md"]
    assert any(f"perfdiff {name}" in document.read_text(encoding="utf-8") for document in others), "no document shows it"


def test_every_option_has_a_help_text() -> None:
    silent = [
        (page.name, entry.written) for page in manual.pages() for entry in page.entries if not entry.says.removeprefix("[required]").strip()
    ]
    assert silent == []


def test_every_command_has_an_example_or_needs_none() -> None:
    """A command without options of its own beyond the common ones is its own example."""
    plain = {"perfdiff init", "perfdiff doctor", "perfdiff counters", "perfdiff cache"}
    without = {page.name for page in manual.pages() if not any("\n" in part or part.startswith("  ") for part in page.paragraphs)}
    assert {name for name in without if not any(name == each or name.startswith(f"{each} ") for each in plain)} == set()


def test_the_manual_page_has_every_command_and_option() -> None:
    text = manual.roff()
    assert text.startswith(".TH PERFDIFF 1 ")
    plain = text.replace("\\-", "-")
    for name, each in commands().items():
        assert f".SS perfdiff {name} " in plain
        assert all(option in plain for option in known_options(each))


@pytest.mark.skipif(not Path("/usr/bin/groff").exists(), reason="groff is not installed")
def test_the_manual_page_is_read_without_warnings() -> None:
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=manual.roff().encode(), capture_output=True, check=True)
    assert done.stderr == b""
    assert b"Print a script that makes the shell complete" in re.sub(rb"\s+", b" ", re.sub(rb".\x08|\x1b\[[0-9;]*m", b"", done.stdout))


def test_the_methods_list_the_rules_of_the_judge_in_their_order() -> None:
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    rows = [f"| `{rule.name}` | {rule.asks} | {rule.verdict.value} |" for rule in (*RULES, *JOINT_RULES, *PROGRAM_RULES)]
    rows += [f"| `{rule.name}` | {rule.asks} |" for rule in RESERVATIONS]
    assert [line for line in text.splitlines() if line in rows] == rows
