"""The house: imports point down, modules stay small, and only the command line talks to the outside."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from perfdiff.languages.protocol import Counterpart
from perfdiff.records.schema import FunctionInfo

PACKAGE = Path(__file__).parent.parent / "perfdiff"
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))
MOST_LINES = 450

# What each part may import besides itself. Measuring and analysing meet in `records` and the `statistics` of pairs of runs, and in what
# measuring asks of the analysis while runs go on (`ASKED`).
_GROUND = {"config", "errors", "units", "progress", "processes", "seals", "locks", "logs", "temporary", "deadline"}
ALLOWED = {
    "errors": set(),
    "units": set(),
    "progress": set(),
    "processes": {"watchdog"},
    "watchdog": set(),
    "seals": set(),
    "locks": {"config", "errors"},
    "logs": set(),
    "deadline": set(),
    "temporary": {"watchdog"},
    "config": {"errors", "units"},
    "configuration": _GROUND,
    "records": _GROUND,
    "revisions": _GROUND | {"records"},
    "statistics": _GROUND | {"records"},
    "load": _GROUND | {"records"},
    "languages": _GROUND | {"configuration", "records", "revisions"},
    "build": _GROUND | {"configuration", "records", "revisions", "languages"},
    "collect": _GROUND | {"records", "revisions", "languages", "build", "load"},
    "models": _GROUND | {"records"},
    "engines": _GROUND | {"records", "models"},
    "condensing": _GROUND | {"records", "engines"},
    "analysis": _GROUND | {"records", "statistics", "models", "engines"},
    "fuzzing": _GROUND | {"records", "models", "analysis"},
    "report": _GROUND | {"records", "models", "analysis", "fuzzing"},
    "accepted": _GROUND | {"configuration", "analysis"},
    "reproduction": _GROUND | {"configuration", "records"},
    "latest": set(),
    "storage": _GROUND | {"records", "build"},
    "request": _GROUND | {"records", "revisions", "languages", "build", "collect"},
    "measuring": _GROUND | {"records", "statistics", "revisions", "languages", "build", "collect", "analysis", "fuzzing", "request"},
    "cluster": _GROUND | {"records", "revisions", "build", "collect", "storage", "engines", "request", "measuring"},
    "outlook": _GROUND | {"records", "statistics", "revisions", "languages", "build", "collect", "storage", "request", "measuring"},
    "concluded": _GROUND | {"records", "models", "analysis"},
    "outcome": _GROUND | {"records", "revisions", "storage", "engines", "analysis", "fuzzing", "concluded"},
    "clustered": _GROUND | {"records", "revisions", "storage", "engines", "cluster", "measuring", "outcome", "request"},
    "pipeline": _GROUND
    | {
        "records",
        "revisions",
        "languages",
        "collect",
        "storage",
        "analysis",
        "measuring",
        "outcome",
        "request",
        "clustered",
        "build",
        "latest",
    },
    "recorder": _GROUND | {"records", "revisions", "languages", "build", "collect", "storage", "request", "measuring"},
    "exploring": _GROUND | {"records", "revisions", "languages", "build", "collect", "storage", "request", "measuring"},
    "searching": _GROUND
    | {
        "records",
        "revisions",
        "build",
        "collect",
        "storage",
        "models",
        "analysis",
        "fuzzing",
        "measuring",
        "request",
        "pipeline",
    },
    "trending": _GROUND | {"records", "revisions", "languages", "build", "collect", "storage", "analysis", "request"},
    "searches": _GROUND
    | {
        "records",
        "revisions",
        "build",
        "collect",
        "storage",
        "models",
        "analysis",
        "report",
        "request",
        "outcome",
        "pipeline",
        "clustered",
        "trending",
    },
}
# What is known of languages without the code of their packs: all of the house may ask.
OF_ALL_LANGUAGES = {f"perfdiff.languages.{name}" for name in ("check", "frameworks", "installed", "kept_files", "listing", "traits")}
# The same within the analysis, besides the values that all of it writes and `policy`, the thresholds that decide.
VALUES = {
    "findings",
    "acceptances",
    "callgraph",
    "claims",
    "kernel_use",
    "lasting",
    "linegrowth",
    "oddcalls",
    "peaks",
    "policy",
    "series",
    "witnessed",
}
ANALYSIS = {
    "stats": set(),
    "sums": {"stats"},
    "compare": {"stats", "sums"},
    "counts": {"stats", "sums", "compare"},
    "blame": {"stats", "sums", "compare", "counts"},
    "causes": {"sums", "compare", "counts", "blame"},
    "verdicts": {"stats", "sums", "compare", "counts", "blame", "trends"},
    "telling": {"sums", "compare", "blame", "causes", "verdicts", "trends"},
    "annotations": {"stats", "sums", "compare"},
    "search": {"stats", "sums", "compare", "trends"},
    "trends": {"stats"},
}
# The same within the measuring side's largest part, whose folders are what they are about.
COLLECT = {
    "recordings": set(),
    "execution": set(),
    "choosing": {"recordings"},
    "trees": {"execution"},
    "serving": {"execution"},
    "runs": {"recordings", "execution", "choosing", "trees", "serving"},
    "hosts": {"execution", "serving", "runs"},
    "counts": {"recordings", "runs", "hosts"},
    "built": {"choosing", "runs", "counts"},
}
# What measuring asks of the analysis, with the reason; of all else it has to know nothing.
ASKED = {
    "perfdiff.analysis.counts.work": "no call has to be timed where whole runs and the counts of all functions answer",
    "perfdiff.analysis.looks": "runs go on until the judge of the report can answer, and no others are to decide that",
    "perfdiff.analysis.verdicts.wholeruns": "the same of pairs of whole runs, which are judged by themselves while they are made",
    "perfdiff.analysis.verdicts.seldom": "how many runs good news needs, so that slow ones which are rare were met",
    "perfdiff.analysis.verdicts.ways": "which pairs the judge misses where those made in two ways seem to differ",
    "perfdiff.analysis.verdicts.waiting": "whether runs wait, of which pairs are judged, says which may be made at the same time",
    "perfdiff.analysis.verdicts.requests": "whether head waits for services outside says that files which lay these out are looked for",
    "perfdiff.analysis.verdicts.succession": "whether runs that follow each other seem longer in head says that they are made once more",
    "perfdiff.analysis.findings": "these are the values that both answer in",
    "perfdiff.analysis.policy": "the numbers that decide are one value: what a wait is, and what the place of code may make",
}
PACKS = {path.parent.name for path in (PACKAGE / "languages").glob("*/__init__.py")}
# What one pack takes from another: all processes record through the one C runtime.
LENT = "perfdiff.languages.c.runtime_library."
ABOVE = {"cli", "__main__", "__init__"}  # may import everything

# Run as programs of their own: in the user's build, in place of the compiler; beside us, where a library may crash; by the interpreter
# that is measured.
STANDS_ALONE = {
    "build/compiling.py",
    "build/fuzzing.py",
    "build/recording.py",
    "build/repeating.py",
    "build/reuse.py",
    "build/wrapper.py",
    "cluster/examination.py",
    "cluster/hosting.py",
    "cluster/station.py",
    "collect/hosts/papi.py",
    "collect/serving/proxy.py",
    "collect/trees/reported.py",
    "load/__main__.py",
    "languages/c/suites/testing.py",
    "languages/listing.py",
    "languages/php/suites/trials.py",
    "languages/python/benchmarks/__main__.py",
    "languages/python/benchmarks/alone.py",
    "languages/python/benchmarks/asv.py",
    "languages/python/benchmarks/cases.py",
    "languages/python/benchmarks/functions.py",
    "languages/python/benchmarks/items.py",
    "languages/python/benchmarks/marks.py",
    "languages/python/benchmarks/reporting.py",
    "languages/python/benchmarks/scripts.py",
    "languages/python/benchmarks/watching.py",
    "languages/python/scripts/asking_backend.py",
    "languages/python/scripts/compared_code.py",
    "languages/python/scripts/compiling.py",
    "languages/python/scripts/counted_lines.py",
    "languages/python/scripts/describing.py",
    "languages/python/scripts/fork_server.py",
}
HEAVY = {"distributed", "dask", "torch", "sklearn", "matplotlib", "scipy"}


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def part(path: Path) -> str:
    return relative(path).removesuffix(".py").split("/")[0]


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Return the full names of the modules that one imports and, for `from a import b`, of `a.b`."""
    return tuple(_imported(ast.walk(parse(path))))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def breaking(modules: Iterable[Path], broken: Callable[[Path], Collection[object]]) -> dict[str, Collection[object]]:
    """Return the modules that break a rule, with how; `broken` says it of one."""
    return {relative(path): found for path in modules if (found := broken(path))}


def test_imports_are_absolute() -> None:
    """But within a package that is copied to where it has another name."""

    def broken(path: Path) -> list[int]:
        return [node.lineno for node in ast.walk(parse(path)) if isinstance(node, ast.ImportFrom) and node.level]

    assert breaking([path for path in MODULES if relative(path) not in STANDS_ALONE], broken) == {}


def test_imports_point_down() -> None:
    below = [path for path in MODULES if part(path) not in ABOVE]
    assert {part(path) for path in below} - ALLOWED.keys() == set(), "has no place in the house: add it to ALLOWED and docs/architecture.md"

    def broken(path: Path) -> set[str]:
        names = {name for name in imports(path) if name.startswith("perfdiff.")}
        used = {name.split(".")[1] for name in names if not _is_of(name, OF_ALL_LANGUAGES)}
        return used - {part(path), "__version__"} - ALLOWED[part(path)]

    assert breaking(below, broken) == {}


def _is_of(name: str, modules: Collection[str]) -> bool:
    """Return whether what is imported is one of some modules, or stands in one."""
    return name in modules or name.rpartition(".")[0] in modules


def test_who_sends_requests_starts_without_what_computes() -> None:
    asked = "import sys, perfdiff.load.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numpy", "perfdiff.records.schema"} & set(loaded)


def test_what_all_may_ask_of_languages_loads_no_code_of_theirs() -> None:
    asked = "import sys; from perfdiff.languages.installed import installed; installed(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    own = {name for name in loaded if name.startswith("perfdiff.languages.") and len(name.split(".")) > 3}
    assert own == {*(f"perfdiff.languages.{pack}.traits" for pack in PACKS), "perfdiff.languages.java.complaints"}
    assert not {"clang", "tree_sitter", "numpy"} & set(loaded)


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("storage", ["perfdiff.build.builder"]),
        ("report.explain", ["perfdiff.analysis.compare.comparison"]),
        ("outlook", ["perfdiff.measuring.bench", "clang", "ssl"]),
        ("languages.c.pack", ["perfdiff.languages.c.index", "perfdiff.languages.c.machine_code", "clang", "elftools"]),
    ],
)
def test_who_only_tells_what_is_known_loads_nothing_that_measures_or_judges(module: str, unneeded: list[str]) -> None:
    asked = f"import sys, perfdiff.{module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    assert not set(unneeded) & set(loaded)


def test_imports_within_the_analysis_point_one_way() -> None:
    def broken(path: Path) -> set[str]:
        own = path.parent.name
        used = {name.split(".")[2] for name in imports(path) if name.startswith("perfdiff.analysis.")}
        return used - {own} - VALUES - ANALYSIS[own]

    assert breaking(sorted((PACKAGE / "analysis").glob("*/*.py")), broken) == {}


def test_measuring_asks_the_analysis_whether_runs_go_on_and_nothing_else() -> None:
    def asked(path: Path) -> set[str]:
        return {name for name in _modules(imports(path), modules) if name.startswith("perfdiff.analysis")}

    modules, measuring = {module(path) for path in MODULES}, [path for path in MODULES if part(path) == "measuring"]
    assert breaking(measuring, lambda path: asked(path) - ASKED.keys()) == {}
    assert ASKED.keys() - set().union(*map(asked, measuring)) == set(), "is not asked any more"


def test_imports_between_the_folders_of_collecting_point_one_way() -> None:
    assert {path.parent.name for path in (PACKAGE / "collect").glob("*/*.py")} == COLLECT.keys(), "has no place: add it to COLLECT"
    assert [*(PACKAGE / "collect").glob("*.py")] == [PACKAGE / "collect" / "__init__.py"]
    TopologicalSorter(COLLECT).prepare()

    def broken(path: Path) -> set[str]:
        own = path.parent.name
        used = {name.split(".")[2] for name in imports(path) if name.startswith("perfdiff.collect.")}
        return used - {own} - COLLECT[own]

    assert breaking(sorted((PACKAGE / "collect").glob("*/*.py")), broken) == {}


def test_language_packs_know_nothing_of_each_other() -> None:
    def broken(path: Path) -> set[str]:
        own = path.relative_to(PACKAGE / "languages").parts[0]
        used = {name for name in imports(path) if name.startswith("perfdiff.languages.") and not f"{name}.".startswith(LENT)}
        return ({name.split(".")[2] for name in used} & PACKS) - ({own} if own in PACKS else set())

    assert breaking(sorted((PACKAGE / "languages").rglob("*.py")), broken) == {}


# Words by which a single language is named, its engine, or a tool of its own.
OF_ONE_LANGUAGE = re.compile(
    r"python|java|php|jvm|jdk|maven|gradle|composer|zend|hsperfdata|pycache|\.pyc\b|\bpip\b|pytest|\basv\b|sizeof", re.IGNORECASE
)
# Modules outside of packs that name one, with what they have to do with it.
NAMING_ONE = {
    "build/relinking.py": "reads which definitions a link took, of what C and C++ are compiled to",
    "build/calls.py": "reads calls of C's compilers, in whose place it is run",
    "build/commands.py": "the same",
    "build/fuzzing.py": "links fuzz targets, which are C's, with a main",
    "build/kinds.py": "perfdiff's own interpreter",
    "build/links.py": "reads calls of C's compilers",
    "build/masquerade.py": "stands in place of C's compilers, and has its own modules compiled",
    "cli/comparison.py": "says which languages perfdiff reads",
    "cli/record.py": "an example of a command",
    "cluster/workers.py": "perfdiff's own interpreter, here and on machines of a cluster",
    "collect/counts/attached.py": "the name of a library of perfdiff's",
    "collect/hosts/doctor.py": "perfdiff's own interpreter",
    "collect/built/reach.py": "examples of what leads a program to a copy",
    "collect/serving/requests.py": "perfdiff's own interpreter, which sends requests",
    "configuration/reading.py": "a library that an extra of perfdiff's brings",
    "fuzzing/grammars.py": "how a package of perfdiff's own is installed",
    "configuration/servers.py": "servers that `init` proposes are known by files of frameworks",
    "configuration/workloads.py": "perfdiff's own interpreter, which sends requests",
    "cli/compare.py": "names the tools whose results are read",
    "records/results/asvresults.py": "reads files of a tool that is of one language",
    "records/results/jmh.py": "the same",
    "records/results/phpbench.py": "the same",
    "records/results/pytestbenchmark.py": "the same",
    "records/results/reading.py": "tells such files apart",
    "records/remote.py": "how a package of perfdiff's own is installed",
}


def test_what_is_known_of_single_languages_stands_in_their_packs() -> None:
    others = [path for path in MODULES if part(path) != "languages"]
    naming = breaking(others, lambda path: sorted(_named_languages(parse(path))))
    assert {name: words for name, words in naming.items() if name not in NAMING_ONE} == {}
    assert NAMING_ONE.keys() - naming.keys() == set(), "names none any more"


def _named_languages(tree: ast.Module) -> Iterator[str]:
    """Yield texts and names in which a language is named, without docstrings, and packs that are imported."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    first = (node.body[0] for node in ast.walk(tree) if isinstance(node, documented) and node.body)
    docstrings = {statement.value for statement in first if isinstance(statement, ast.Expr)}
    packs = re.compile(rf"perfdiff\.languages\.({'|'.join(PACKS)})\b")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and node not in docstrings:
            text = node.value.decode(errors="replace") if isinstance(node.value, bytes) else node.value
        else:
            text = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if OF_ONE_LANGUAGE.search(text):
            yield text
    yield from (name for name in _imported(ast.walk(tree)) if packs.match(name))


@pytest.mark.parametrize(
    "text", ["_CACHES = '__pycache__'", "x = config.java", "S = re.compile(b'sizeof')", "from perfdiff.languages.php import start"]
)
def test_a_module_that_names_a_language_is_seen(text: str) -> None:
    assert list(_named_languages(ast.parse(text)))
    assert not list(_named_languages(ast.parse('"""Java is a language."""\nx = config.languages')))


def test_no_module_imports_what_imports_it() -> None:
    TopologicalSorter(importing()).prepare()


@functools.cache
def importing() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    modules = {module(path) for path in MODULES}
    return {module(path): _modules(imports(path), modules) - {module(path)} for path in MODULES}


def module(path: Path) -> str:
    return ".".join(("perfdiff", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def _modules(names: Iterable[str], modules: set[str]) -> set[str]:
    """Return the modules that imported names are, or stand in."""
    return {name if name in modules else name.rpartition(".")[0] for name in names if name.startswith("perfdiff.")}


def test_the_house_has_no_rooms_that_do_not_exist() -> None:
    assert set(ALLOWED) | ABOVE | {"cli"} == {part(path) for path in MODULES}


def test_modules_are_of_one_noun_in_size_and_name() -> None:
    lines = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
    assert {path.stem for path in MODULES} & {"utils", "util", "helpers", "common", "misc"} == set()


def test_only_the_command_line_prints_exits_and_reads_the_environment() -> None:
    others = [path for path in MODULES if part(path) != "cli" and relative(path) not in STANDS_ALONE]
    assert breaking(others, lambda path: list(forbidden(parse(path)))) == {}


def forbidden(tree: ast.AST) -> Iterator[str]:
    outside = {
        "os.environ",
        "os.environb",
        "os.getenv",
        "os.putenv",
        "os.chdir",
        "sys.argv",
        "sys.exit",
        "sys.stdout",
        "sys.stderr",
        "os._exit",
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in {"print", "exit", "quit", "input"} and isinstance(node.ctx, ast.Load):
            yield f"line {node.lineno}: {node.id}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and f"{node.value.id}.{node.attr}" in outside:
            yield f"line {node.lineno}: {node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in {"os", "sys"}:
            yield from (
                f"line {node.lineno}: {node.module}.{alias.name}" for alias in node.names if f"{node.module}.{alias.name}" in outside
            )


def test_failures_are_not_swallowed() -> None:
    assert breaking(MODULES, lambda path: list(swallowing(parse(path)))) == {}


def swallowing(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "everything"
            reraises = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
            if not reraises and caught in {"everything", "Exception", "BaseException"}:
                yield f"line {node.lineno}"


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    def broken(path: Path) -> set[str]:
        at_top = [node for node in parse(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
        return {name.split(".")[0] for name in _imported(at_top)} & HEAVY

    assert breaking(MODULES, broken) == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("print(1)", "line 1: print"),
        ("import os\nos.environ['A']", "line 2: os.environ"),
        ("from os import environ", "line 1: os.environ"),
        ("import sys\nsys.exit(1)", "line 2: sys.exit"),
        ("import os\nos.environ.get('A')", "line 2: os.environ"),
    ],
)
def test_the_rule_sees_what_it_forbids(source: str, found: str) -> None:
    assert found in list(forbidden(ast.parse(source)))


@pytest.mark.parametrize("caught", ["", " Exception", " BaseException as error"])
def test_a_handler_of_everything_is_seen(caught: str) -> None:
    text = f"try:\n    f()\nexcept{caught}:\n    "
    assert list(swallowing(ast.parse(f"{text}pass"))) == ["line 3"]
    assert list(swallowing(ast.parse(f"{text}raise"))) == []


def test_who_reads_findings_loads_neither_what_analyses_nor_what_measures() -> None:
    asked = "import sys, perfdiff.outcome, perfdiff.report.explain; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout.split()
    assert "perfdiff.outcome" in loaded
    assert not {
        "perfdiff.analysis.analysis",
        "perfdiff.models.fitting",
        "perfdiff.measuring.site",
        "perfdiff.measuring.bench",
        "perfdiff.languages.packs",
        "pyarrow",
    } & set(loaded)


# What texts for people are called where they are bound.
PROSE = {"says", "reason", "sentence", "headline", "happened"}
WORDED = PROSE | {"culprit", "error"}  # and values that print as such texts, which may be compared, but not taken apart
TAKES_APART = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit"}
MAY_READ = {
    "records/earlier.py",  # what earlier versions stored as text
    "languages/c/unit.py",  # knows its own reasons again, as a whole, by the constants that they are
    "records/fleet.py",  # so does this
    "languages/check.py",  # shows the two halves of an error's message apart, what is wrong and what to do
    "collect/hosts/servicehost.py",  # so does this
}


def test_no_decision_reads_what_people_read() -> None:
    """Kinds decide: a sentence, a reason or the words for a culprit is never taken apart, nor compared with other words."""
    below = [path for path in MODULES if part(path) not in {"report", "cli"} and relative(path) not in MAY_READ]
    assert breaking(below, lambda path: list(reading_prose(parse(path)))) == {}


WITH_SENTENCES = ("analysis/search/",)  # its errors tell what is looked for, and how much it is
# What rules ask is printed by `perfdiff explain`; evidence names a count.
ASKING = {"Rule", "JointRule", "ProgramRule", "Reservation", "CauseFigure"}
MOST_WORDS = 4  # of the name of a kind, as "mean of all calls"


def test_the_analysis_makes_no_sentences() -> None:
    """A conclusion is a claim; `report/sentences` has the words for it."""
    analysing = [path for path in MODULES if relative(path).startswith("analysis/") and not relative(path).startswith(WITH_SENTENCES)]
    assert breaking(analysing, lambda path: list(sentences(parse(path)))) == {}


def sentences(tree: ast.AST) -> Iterator[str]:
    """Yield texts of several words that are no docstring, no question of a rule and no error."""
    meant = {id(part) for node in ast.walk(tree) if _is_meant(node) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in meant:
            text = _text(node)
            yield from [f"line {node.lineno}: {text[:40]}"] if len(text.split()) > MOST_WORDS else []


def _text(node: ast.expr) -> str:
    """Return a text, with a letter for each value in it."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "x" * isinstance(node, ast.FormattedValue)


def _is_meant(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ASKING
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


@pytest.mark.parametrize("source", ["return 'what it calls became slower'", "f'{name} is {more} slower than before'"])
def test_the_rule_sees_who_makes_sentences(source: str) -> None:
    assert list(sentences(ast.parse(source)))


def reading_prose(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKES_APART:
            yield from [f"line {node.lineno}: {node.func.attr}"] if _called(node.func.value) in WORDED else []
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn | ast.Eq | ast.NotEq):
            yield from [f"line {node.lineno}: compared"] if _called(node.left) in PROSE else []


def _called(node: ast.expr) -> str:
    """Return what a value is called; of a call such as `str(culprit)`, its argument."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        return _called(node.args[0])
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_what_differs_of_functions_is_typed() -> None:
    types = {field.name: field.type for kind in (FunctionInfo, Counterpart) for field in dataclasses.fields(kind)}
    assert (types["culprits"], types["reasons"]) == ("tuple[Entity, ...]", "tuple[ChangeReason, ...]")


@pytest.mark.parametrize(
    "source",
    [
        "culprit.startswith('global ')",
        "declaration.says.split()[0]",
        "skip.reason in IDLE",
        "metric_of(counter).says.removesuffix(' executed')",
        "finding.headline.removesuffix(cause)",
        "str(error).startswith(NAMED)",
    ],
)
def test_the_rule_sees_who_reads_prose(source: str) -> None:
    assert list(reading_prose(ast.parse(source)))
