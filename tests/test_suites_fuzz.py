"""Fuzz targets as workloads: what the build links them from, which seeds they are called with, and what is told of those that fail."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

import runtimes
from perfdiff import configuration, reproduction
from perfdiff.build import fuzzing
from perfdiff.build.cache import BuildCache
from perfdiff.build.masquerade import Masquerade, set_up_masquerade
from perfdiff.build.variants import BuildRequest
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs import runfeatures
from perfdiff.collect.runs.inputs import NO_INPUTS
from perfdiff.collect.runs.schedule import Slot
from perfdiff.config import Suite, WorkloadConfig
from perfdiff.errors import ConfigError
from perfdiff.languages.c.suites import seeds
from perfdiff.languages.c.suites.fuzz import FuzzTargets
from perfdiff.languages.listing import CALLS, LISTED_TO, LISTING_S, SuiteListing, command
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.benchmarks import with_benchmarks
from perfdiff.measuring.changes import site_of
from perfdiff.progress import Silent, Stopwatch
from perfdiff.records.schema import Phase, Point, Side
from perfdiff.request import Request
from perfdiff.revisions.pins import resolve_one
from perfdiff.revisions.repository import find_repository
from programs import committed

integration = pytest.mark.integration
with_clang = pytest.mark.skipif(not shutil.which("clang"), reason="needs clang (Debian: clang)")

LIBRARY = {
    "parse.h": '#include <stddef.h>\n#ifdef __cplusplus\nextern "C"\n#endif\nint parse(const unsigned char *data, size_t size);\n',
    "parse.c": """
#include "parse.h"
int parse(const unsigned char *data, size_t size)
{
	int sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = 31 * sum + data[i];
	return sum;
}
""",
}
TARGET = """
#include <stdint.h>
#include <stdio.h>
#include "parse.h"
static int calls;
static void tell(size_t size, int sum)
{
	printf("%d %zu %d\\n", ++calls, size, sum);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	tell(size, parse(data, size));
	return 0;
}
"""
SEEDS = {"fuzz/corpus/parse/small": "a", "fuzz/corpus/parse/large": "a" * 1000}
PROJECT = {**LIBRARY, "fuzz/parse_fuzzer.c": TARGET, **SEEDS}
ARCHIVE = "gcc -O2 -c parse.c && ar rc libparse.a parse.o"


@dataclass(frozen=True, slots=True)
class Project:
    """A tree that is built behind the masquerade, with its fuzz targets."""

    tree: Path
    masquerade: Masquerade

    def build(self, build: str, *values: str) -> None:
        """Build, and link what values of the key mean behind it, "" where there is none."""
        needs = FuzzTargets().needs(self.tree, values or ("",))
        targets = needs.build["fuzz_targets"]
        assert isinstance(targets, tuple)
        self.run(build)
        self.run(f'"$PYTHON" -P -m {fuzzing.__name__} "$FOLDER" "$@"', *targets)

    def run(self, text: str, *words: str) -> None:
        variables = {**self.masquerade.environment, "PYTHON": sys.executable, "FOLDER": str(self.masquerade.folder)}
        subprocess.run(["sh", "-c", text, "sh", *words], cwd=self.tree, env=variables, check=True)

    def listed(self, what: str = "", limit_s: float = 60.0) -> SuiteListing:
        file = self.tree.parent / "listing.json"
        variables = {**os.environ, LISTED_TO: str(file), LISTING_S: str(limit_s)}
        subprocess.run(command("perfdiff.languages.c.suites.fuzz:listed", what), shell=True, cwd=self.tree, env=variables, check=True)
        return SuiteListing.read(file.read_text())

    def printed(self, listing: SuiteListing, name: str, seed: str, calls: int) -> list[str]:
        text = listing.benchmarks[name].command.replace(CALLS, str(calls)).replace("{input}", seed)
        return subprocess.run(text, shell=True, cwd=self.tree, capture_output=True, text=True, check=True).stdout.splitlines()


def project(folder: Path, files: Mapping[str, str | bytes]) -> Project:
    """Write a tree, with compilers that are recorded."""
    tree = folder / "tree"
    write(tree, files)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    return Project(tree, set_up_masquerade(folder / "build", tree, environment))


def write(tree: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content.encode() if isinstance(content, str) else content)


@integration
@pytest.mark.parametrize(
    "build",
    [
        ARCHIVE,
        "gcc -O2 -c parse.c",
        "gcc -O2 -fPIC -shared -o libparse.so parse.c",
        'printf "int main(void) { return 0; }" > main.c && gcc -O2 -o program main.c parse.c',
        "cd fuzz && gcc -O2 -c ../parse.c",
        "gcc -O2 -flto -c parse.c",
        "gcc -O2 -flto -c parse.c && gcc-ar rc libparse.a parse.o && rm parse.o",
        pytest.param("clang -O2 -c parse.c", marks=with_clang),
    ],
    ids=["archive", "object", "shared library", "program", "from a folder", "link time", "archive of link time", "clang"],
)
def test_a_target_is_linked_with_what_the_build_made(tmp_path: Path, build: str) -> None:
    fuzzed = project(tmp_path, PROJECT)
    fuzzed.build(build)
    listing = fuzzed.listed()
    assert listing.failures == {}
    assert listing.benchmarks.keys() == {"parse_fuzzer"}
    benchmark = listing.benchmarks["parse_fuzzer"]
    assert benchmark.parameters == ("input",)
    assert benchmark.points.keys() == {("fuzz/corpus/parse/small",), ("fuzz/corpus/parse/large",)}
    assert all(0 < seconds < 1e-3 and again for seconds, again in benchmark.points.values())
    assert fuzzed.printed(listing, "parse_fuzzer", "fuzz/corpus/parse/small", 3) == ["1 1 97", "2 1 97", "3 1 97"]


@integration
def test_the_words_of_links_and_of_the_nearest_compile_are_taken(tmp_path: Path) -> None:
    header = LIBRARY["parse.h"] + "#ifndef DEPTH\n#error no depth\n#endif\n"
    source = "#include <zlib.h>\n#include <parse.h>\nint parse(const unsigned char *d, size_t n) { return !crc32(0, d, n) + DEPTH; }\n"
    fuzzed = project(tmp_path, {**PROJECT, "parse.h": "", "own/parse.h": header, "parse.c": source, "main.c": "int main() { return 0; }"})
    fuzzed.build("gcc -Wall -Werror -DDEPTH=7 -Iown -c parse.c && gcc main.c parse.o -lz -o program")
    listing = fuzzed.listed()
    assert listing.failures == {}
    assert fuzzed.printed(listing, "parse_fuzzer", "fuzz/corpus/parse/small", 1) == ["1 1 7"]


@integration
def test_headers_and_sources_that_the_targets_own_build_would_name_are_found_in_the_tree(tmp_path: Path) -> None:
    helper = '#include "own/deep.h"\n#include "helper.h"\nint least(int sum) { return sum < DEEP ? DEEP : sum; }\n'
    target = '#include "helper.h"\n' + TARGET.replace("parse(data, size))", "least(parse(data, size)))")
    files = {
        "fuzz/helper.c": helper,
        "fuzz/common/helper.h": "int least(int sum);\n",
        "lib/far/own/deep.h": "#define DEEP 500\n",
        "fuzz/broken.c": "?",
        "fuzz/other.c": "int other(void) { int nobody(void); return nobody(); }\n",
        "fuzz/program.c": "int main(void) { return least(); }\n",
        "fuzz/parse_fuzzer.c": target,
    }
    fuzzed = project(tmp_path, {**PROJECT, **files})
    fuzzed.build(ARCHIVE)
    listing = fuzzed.listed()
    assert listing.failures == {}
    assert fuzzed.printed(listing, "parse_fuzzer", "fuzz/corpus/parse/small", 1) == ["1 1 500"]


@integration
def test_an_object_with_a_main_of_its_own_gives_what_else_it_has(tmp_path: Path) -> None:
    fuzzed = project(tmp_path, {**PROJECT, "parse.c": LIBRARY["parse.c"] + "int main(void) { return 9; }\n"})
    fuzzed.build("gcc -c parse.c -o program.o && gcc program.o -o program")
    assert fuzzed.printed(fuzzed.listed(), "parse_fuzzer", "fuzz/corpus/parse/small", 1) == ["1 1 97"]


@integration
def test_a_target_is_initialised_once(tmp_path: Path) -> None:
    initialises = """
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	printf("%d %c\\n", *argc, (*argv)[0][0]);
	calls = 40;
	return 0;
}
"""
    fuzzed = project(tmp_path, {**PROJECT, "fuzz/parse_fuzzer.c": TARGET + initialises})
    fuzzed.build(ARCHIVE)
    assert fuzzed.printed(fuzzed.listed(), "parse_fuzzer", "fuzz/corpus/parse/small", 2) == ["1 .", "41 1 97", "42 1 97"]


@integration
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=with_clang)])
def test_a_target_in_another_language_than_the_library_is_compiled_in_its_own(tmp_path: Path, compiler: str) -> None:
    source = """
#include <cstdint>
#include <stdexcept>
#include <string>
#include "parse.h"
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 500)
		throw std::runtime_error("too long");
	try {
		throw std::string(1, static_cast<char>(parse(data, size)));
	} catch (const std::string &text) {
		return text.empty();
	}
}
"""
    fuzzed = project(tmp_path, {**LIBRARY, **SEEDS, "fuzz/parse_fuzzer.cc": source})
    fuzzed.build(f"{compiler} -std=c99 -c parse.c")
    listing = fuzzed.listed()
    assert listing.benchmarks["parse_fuzzer"].points.keys() == {("fuzz/corpus/parse/small",)}
    (reason,) = listing.failures.values()
    assert listing.failures.keys() == {"parse_fuzzer fuzz/corpus/parse/large"}
    assert reason == "signal 6: what():  too long"


@integration
@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("__builtin_trap();", "signal 4"),
        ("exit(3);", "exit code 3"),
        ("exit(0);", "it ends the process"),
        ("for (;;) ;", "takes longer than 2 s"),
        ('fputs("no display\\n", stderr), abort();', "signal 6: no display"),
    ],
)
def test_a_seed_that_a_target_does_not_take_is_left_out(tmp_path: Path, statement: str, says: str) -> None:
    source = TARGET.replace("	tell", f"	if (size > 500) {{ {statement} }}\n	tell").replace(
        "<stdio.h>", "<stdio.h>\n#include <stdlib.h>"
    )
    fuzzed = project(tmp_path, {**PROJECT, "fuzz/parse_fuzzer.c": source})
    fuzzed.build(ARCHIVE)
    listing = fuzzed.listed(limit_s=2.5)
    assert listing.failures == {"parse_fuzzer fuzz/corpus/parse/large": says}
    assert listing.benchmarks["parse_fuzzer"].points.keys() == {("fuzz/corpus/parse/small",)}


@integration
def test_targets_with_functions_of_the_same_names_are_programs_of_their_own(tmp_path: Path) -> None:
    other = TARGET.replace("++calls", "calls += 100")
    fuzzed = project(tmp_path, {**PROJECT, "fuzz/other_fuzzer.c": other, "fuzz/deep/parse_fuzzer.c": TARGET})
    fuzzed.build("gcc -c parse.c && gcc -I. -c fuzz/parse_fuzzer.c -o own.o")
    listing = fuzzed.listed()
    assert listing.benchmarks.keys() == {"fuzz/parse_fuzzer.c", "fuzz/deep/parse_fuzzer.c", "other_fuzzer"}
    assert fuzzed.printed(listing, "other_fuzzer", "parse.c", 2)[1].startswith("200 ")
    assert fuzzed.printed(listing, "fuzz/parse_fuzzer.c", "parse.c", 2)[1].startswith("2 ")


@integration
def test_one_target_is_listed_by_its_source(tmp_path: Path) -> None:
    fuzzed = project(tmp_path, {**PROJECT, "fuzz/other_fuzzer.c": TARGET})
    fuzzed.build(ARCHIVE, "fuzz/other_fuzzer.c parse.c parse.h", "fuzz/parse_fuzzer.c")
    listing = fuzzed.listed("fuzz/other_fuzzer.c")
    assert {name: set(benchmark.points) for name, benchmark in listing.benchmarks.items()} == {"other_fuzzer": {("parse.c",), ("parse.h",)}}


@integration
@pytest.mark.parametrize(
    ("files", "build", "says"),
    [
        (
            {"fuzz/parse_fuzzer.c": "int missing(void);" + TARGET.replace("return 0", "return missing()")},
            ARCHIVE,
            "it does not link: undefined reference to `missing'",
        ),
        ({"fuzz/parse_fuzzer.c": TARGET + "?"}, ARCHIVE, "it does not compile: expected identifier or '(' before '?' token"),
        ({}, "true", "the build compiled nothing"),
        ({}, f"{ARCHIVE} && rm fuzz/parse_fuzzer.c", "this revision does not have it"),
        ({"fuzz/corpus/parse.md": ""}, ARCHIVE, 'it has no seeds; name them: fuzz = "fuzz/parse_fuzzer.c FOLDER"'),
        ({"fuzz/corpus/parse.zip": b"PK\3\4 nonsense"}, ARCHIVE, "fuzz/corpus/parse.zip cannot be read: File is not a zip file"),
    ],
)
def test_what_is_wrong_with_a_target_is_told_in_a_line(tmp_path: Path, files: Mapping[str, str | bytes], build: str, says: str) -> None:
    kept = {
        name: text
        for name, text in PROJECT.items()
        if not any(name.startswith(Path(other).with_suffix("").as_posix() + "/") for other in files)
    }
    fuzzed = project(tmp_path, {**kept, **files})
    fuzzed.build(build)
    listing = fuzzed.listed()
    assert (listing.benchmarks, listing.failures) == ({}, {"parse_fuzzer": says})


@integration
def test_a_tree_without_linked_targets_lists_nothing(tmp_path: Path) -> None:
    listing = project(tmp_path, PROJECT).listed()
    assert listing.benchmarks == {}
    assert "the build has linked none" in listing.failures["fuzz targets"]


@integration
def test_seeds_come_out_of_a_zip_and_stay_in_their_folder(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(f"../../escape {number}/{'x' * 200}$", "a" * (number + 1) ** 2)
        archive.writestr("folder/", "")
    fuzzed = project(tmp_path, {**LIBRARY, "fuzz/parse_fuzzer.c": TARGET, "fuzz/parse_fuzzer_seed_corpus.zip": content.getvalue()})
    fuzzed.build(ARCHIVE)
    listing = fuzzed.listed()
    assert listing.failures == {}
    names = [str(values[0]) for values in listing.benchmarks["parse_fuzzer"].points]
    sizes = sorted((fuzzed.tree / name).stat().st_size for name in names)
    assert (len(names), sizes[0], sizes[-1]) == (seeds.MOST_INPUTS, 1, 1600)
    assert {Path(name).parent.as_posix() for name in names} == {"perfdiff-fuzz/fuzz-parse_fuzzer-seeds"}
    assert not list(tmp_path.rglob("*escape*"))


@integration
@with_clang
def test_a_program_of_libfuzzer_is_called_with_a_seed_and_never_searches(tmp_path: Path) -> None:
    fuzzed = project(tmp_path, PROJECT)
    fuzzed.build("clang -fsanitize=fuzzer -I. fuzz/parse_fuzzer.c parse.c -o fuzz/parse_fuzzer", "fuzz/parse_fuzzer")
    listing = fuzzed.listed("fuzz/parse_fuzzer")
    assert listing.failures == {}
    assert all(again for _, again in listing.benchmarks["parse_fuzzer"].points.values())
    lines = fuzzed.printed(listing, "parse_fuzzer", "fuzz/corpus/parse/small", 50)
    assert [line.split()[1:] for line in lines[-50:]] == [["1", "97"]] * 50


@integration
@with_clang
def test_objects_that_need_libfuzzer_are_run_in_the_program_that_the_build_linked(tmp_path: Path) -> None:
    fuzzed = project(tmp_path, PROJECT)
    flags = "-fsanitize=fuzzer-no-link -I."
    build = f"clang {flags} -c parse.c && clang {flags} -c fuzz/parse_fuzzer.c && clang -fsanitize=fuzzer *.o -o fuzz/parse_fuzzer"
    fuzzed.build(f"{build} && mkdir aside && echo >aside/parse_fuzzer")
    listing = fuzzed.listed()
    assert listing.failures == {}
    assert "./fuzz/parse_fuzzer" in listing.benchmarks["parse_fuzzer"].command
    assert listing.benchmarks["parse_fuzzer"].points.keys() == {("fuzz/corpus/parse/small",), ("fuzz/corpus/parse/large",)}


@integration
def test_a_program_with_a_main_of_the_projects_is_called_once_with_a_seed(tmp_path: Path) -> None:
    main = '#include <stdio.h>\nint main(int count, char **words) { return count != 2 || !fopen(words[1], "r"); }\n'
    fuzzed = project(tmp_path, {**SEEDS, "main.c": main})
    fuzzed.build("gcc main.c -o parse_fuzzer", "parse_fuzzer", "other_fuzzer")
    listing = fuzzed.listed()
    assert listing.failures == {"other_fuzzer": "the build makes no such program"}
    assert listing.benchmarks["parse_fuzzer"].command == "./parse_fuzzer {input}"
    assert not any(again for _, again in listing.benchmarks["parse_fuzzer"].points.values())


@integration
@with_clang
def test_headers_of_libfuzzer_are_there_for_gcc_too(tmp_path: Path) -> None:
    source = """
#include <fuzzer/FuzzedDataProvider.h>
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FuzzedDataProvider provider(data, size);
	return provider.ConsumeRandomLengthString(9).size() > 9;
}
"""
    fuzzed = project(tmp_path, {**LIBRARY, **SEEDS, "fuzz/parse_fuzzer.cc": source})
    fuzzed.build(ARCHIVE)
    assert fuzzed.listed().failures == {}


def test_inputs_are_spread_over_the_logarithm_of_their_sizes() -> None:
    sizes = {f"{size:04}": size for size in range(1, 1025)}
    chosen = [int(name) for name in seeds.spread(sizes, 11)]
    assert chosen == [2**power for power in range(11)]
    assert seeds.spread({"b": 5, "a": 5, "empty": 0, "c": 7}) == ("a", "c")
    assert seeds.spread({"empty": 0}) == ("empty",)
    assert seeds.spread({}) == ()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("parse_fuzzer.c", "parse"),
        ("fuzz_parse.cc", "parse"),
        ("parse-fuzz.c", "parse"),
        ("FuzzParse.cpp", "parse"),
        ("ParseFuzzer.cpp", "parse"),
        ("fuzzy_match.c", "fuzzy_match"),
        ("fuzzer.c", "fuzzer"),
        ("target_json_fuzzer.c", "json"),
    ],
)
def test_a_target_is_about_what_its_name_says_without_fuzzing(source: str, name: str) -> None:
    assert seeds.called(Path(source)) == name


@pytest.mark.parametrize(
    ("folders", "chosen"),
    [
        (["fuzz/corpus/parse", "fuzz/corpus/other", "fuzz/seeds"], "fuzz/corpus/parse"),
        (["fuzz/corpus/parse_fuzzer", "fuzz/corpus"], "fuzz/corpus/parse_fuzzer"),
        (["fuzz/seeds", "tests/data"], "fuzz/seeds"),
        (["tests/corpus", "docs/corpus/manual"], "tests/corpus"),
        (["fuzz/parse_corpus", "tests/corpus"], "fuzz/parse_corpus"),
        (["tests/data", "docs/pictures"], "tests/data"),
        (["docs/pictures"], None),
    ],
)
def test_seeds_lie_in_folders_that_are_named_for_them(tmp_path: Path, folders: list[str], chosen: str | None) -> None:
    files = {f"{folder}/{size}.txt": "a" * size for folder in folders for size in (1, 10, 100)}
    write(tmp_path, {**files, "tests/data/README.md": "", "fuzz/parse_fuzzer.c": TARGET})
    (target,) = FuzzTargets().needs(tmp_path, [""]).build["fuzz_targets"]  # type: ignore[misc]
    assert target.split() == ["fuzz/parse_fuzzer.c", *([f"{chosen}/{size}.txt" for size in (1, 10, 100)] if chosen else [])]
    assert list(FuzzTargets().find(tmp_path)) == ([""] if chosen else [])


@pytest.mark.parametrize(
    "files",
    [
        {"fuzz/standalone_main.c": "int LLVMFuzzerTestOneInput(const char *data, int size);\nint main() { LLVMFuzzerTestOneInput(0, 0); }"},
        {"third_party/fuzz/parse_fuzzer.c": TARGET},
        {"fuzz/fuzz.py": TARGET},
        {"build/CMakeCache.txt": "", "build/fuzz/parse_fuzzer.c": TARGET},
    ],
)
def test_what_only_speaks_of_targets_is_none(tmp_path: Path, files: Mapping[str, str]) -> None:
    write(tmp_path, {**SEEDS, **files})
    assert list(FuzzTargets().find(tmp_path)) == []


def test_targets_are_configured_with_their_seeds(tmp_path: Path) -> None:
    text = '[build]\ncommand = "make"\n[[workload]]\nfuzz = "fuzz/parse_fuzzer.c fuzz/corpus"\nruns = 3\n'
    write(tmp_path, {**PROJECT, "perfdiff.toml": text})
    config = configuration.load(tmp_path, environment={})
    names = ("fuzz/corpus/parse/small", "fuzz/corpus/parse/large")
    assert config.build.overlay == names
    assert config.build.fuzz_targets == (f"fuzz/parse_fuzzer.c {' '.join(names)}",)
    (workload,) = config.workloads
    assert workload.suite == Suite("fuzz", "fuzz/parse_fuzzer.c fuzz/corpus")
    (tmp_path / "perfdiff.toml").write_text(reproduction.configuration_text(config))
    assert configuration.load(tmp_path, environment={}) == config


def test_a_project_with_targets_and_seeds_needs_no_configuration(tmp_path: Path) -> None:
    write(tmp_path, {**PROJECT, "Makefile": "all:\n"})
    config = configuration.load(tmp_path, environment={})
    assert WorkloadConfig("fuzz", suite=Suite("fuzz", "", guessed=True), command=config.workloads[0].command) == config.workloads[0]
    assert [target.split()[0] for target in config.build.fuzz_targets] == ["fuzz/parse_fuzzer.c"]


@pytest.mark.parametrize(
    "value", ["fuzz/absent.c", "fuzz/parse_fuzzer.c absent/*", "fuzz/parse_fuzzer.c ../*", "fuzz/parse_fuzzer.c /etc/passwd"]
)
def test_a_target_or_seeds_that_are_not_there_are_told(tmp_path: Path, value: str) -> None:
    write(tmp_path, {**PROJECT, "perfdiff.toml": f'build.command = "make"\n[[workload]]\nfuzz = "{value}"\n'})
    with pytest.raises(ConfigError) as raised:
        configuration.load(tmp_path, environment={})
    assert raised.value.slug == "config-fuzz"


def test_an_input_in_the_tree_is_described_as_one_of_the_checkout_is(tmp_path: Path) -> None:
    write(tmp_path, {"seed": "a\nb\n"})
    workload = WorkloadConfig("fuzz", "./target {input} 3", parameters={"input": ("seed",)})
    assert runfeatures.known(workload, Point(0, "fuzz", {"input": "seed"}, ""), tmp_path, NO_INPUTS) == {"bytes": 4.0, "lines": 2.0}


def test_once_cases_are_chosen_builds_link_the_targets_that_these_run_alone(tmp_path: Path) -> None:
    """Plain builds link all, to list them, and so does the one with probes that tells which of them reach the change."""
    committed(tmp_path / "project", [{**PROJECT, "Makefile": "all:", "fuzz/other_fuzzer.c": TARGET, "fuzz/corpus/other/small": "a"}])
    folder = tmp_path / "project"
    config = configuration.load(folder, environment={})
    assert len(config.build.fuzz_targets) == 2
    build = FuzzTargets().needed(config.build, ["./perfdiff-fuzz/fuzz-parse_fuzzer {input} 3", "echo ./perfdiff-fuzz/fuzz-other"])
    pin = resolve_one(find_repository(folder), "HEAD", snapshots=tmp_path).head
    linked = {phase: [text.split()[0] for text in BuildRequest(pin, Side.HEAD, phase, build, {}).fuzz_targets] for phase in Phase}
    both, chosen = ["fuzz/other_fuzzer.c", "fuzz/parse_fuzzer.c"], ["fuzz/parse_fuzzer.c"]
    assert linked == {**dict.fromkeys(Phase, chosen), Phase.PLAIN: both, Phase.SURVEY: both}


@integration
def test_the_targets_of_a_built_revision_are_listed_and_run(tmp_path: Path) -> None:
    """The build's own command may end in a comment, and leave its folder."""
    build = 'build.command = "mkdir -p out && cd out && gcc -O2 -c ../parse.c  # the library"\n'
    history = [{**PROJECT, "perfdiff.toml": f'{build}[[workload]]\nfuzz = ""\n'}]
    committed(tmp_path / "project", history)
    folder, cache = tmp_path / "project", runtimes.lent_to(tmp_path / "cache")
    request = Request(folder, ("HEAD",), configuration.load(folder, environment={}), cache, os.environ)
    pins = resolve_one(find_repository(folder), "HEAD", snapshots=cache / "snapshots")
    (tmp_path / "room").mkdir()
    with BuildCache(cache) as builds:
        bench = Bench(request, pins, builds, tmp_path / "room", request.packs, ProcessExecutor(), Stopwatch(Silent()), (Side.BASE,))
        with closing(bench.upkeep):
            listed, site = with_benchmarks(bench, site_of(bench, bench.workshop.plain()))
            slots = [Slot(Phase.PLAIN, listed.points[1], Side.BASE, 0)]
            ((run, _),) = listed.collector(site.targets).collect(slots, lambda _: None)
    assert [(point.workload, point.parameters) for point in listed.points] == [
        ("parse_fuzzer", {"input": "fuzz/corpus/parse/small"}),
        ("parse_fuzzer", {"input": "fuzz/corpus/parse/large"}),
    ]
    assert run.cpu_ns > 1e7
    assert not site.notes
    assert [text.split()[0] for text in listed.request.config.build.chosen_targets or ()] == ["fuzz/parse_fuzzer.c"]
