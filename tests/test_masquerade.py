"""Stand-ins for compilers: what they record, what they add, what they leave alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from perfdiff.build.additions import UNTRACKED_GCC, Additions, guilty_probes
from perfdiff.build.calls import Build, ParsedCall, split
from perfdiff.build.commands import CompileLog, read_compile_log
from perfdiff.build.links import read_links
from perfdiff.build.masquerade import FlagKind, Flags, Masquerade, set_up_masquerade

pytestmark = pytest.mark.integration

# PD_1 is a sound probe, PD_2 and PD_3 do not compile, and PD_B_4_0 is a branch that does not.
PROBES = """\
#pragma GCC system_header
#include "perfdiff_probe.h"
#ifdef PD_NONE
#define PD_1
#define PD_2
#define PD_3
#define PD_B_4_0 (
#else
#define PD_1 int pd_probe_ __attribute__((unused)) = pd_here(1);
#ifdef PD_NO_2
#define PD_2
#else
#define PD_2 int pd_probe_ = pd_undeclared_function_of_2->member;
#endif
#ifdef PD_NO_3
#define PD_3
#else
#define PD_3 struct pd_incomplete pd_frame_;
#endif
#ifdef PD_NO_4
#define PD_B_4_0 (
#else
#define PD_B_4_0 pd_no_such_variable + (
#endif
#endif
"""
RUNTIME = '#include <stdio.h>\nint pd_here(int probe) { return fprintf(stderr, "probe %d\\n", probe); }\n'
MAIN = "int twice(int);\nint main(void) { return twice(2) - 4; }\n"
TWICE = "int twice(int n) { return 2 * n; }\n"
TWICE_PROBED = "int twice(int n) {PD_1 return 2 * n; }\n"


@dataclass(frozen=True, slots=True)
class Workplace:
    """A tree with a masquerade in front of the real compilers."""

    tree: Path
    masquerade: Masquerade

    def run(self, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            shell=True,
            cwd=self.tree,
            env={**self.masquerade.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text(text)

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.masquerade.calls.glob("*.json"))]

    @property
    def log(self) -> CompileLog:
        return read_compile_log(self.masquerade.calls, self.tree)


def plain_environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LC_ALL": "C"}


def workplace(folder: Path, environment: Mapping[str, str], probes: Flags | None = None) -> Workplace:
    tree = folder / "tree"
    tree.mkdir()
    return Workplace(tree, set_up_masquerade(folder / "build", tree, environment, probes))


@pytest.fixture
def plain(tmp_path: Path) -> Workplace:
    return workplace(tmp_path, plain_environment())


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> Flags:
    folder = tmp_path_factory.mktemp("runtime")
    (folder / "perfdiff_probe.h").write_text('#ifdef __cplusplus\nextern "C"\n#endif\nint pd_here(int);\n')
    (folder / "runtime.c").write_text(RUNTIME)
    (folder / "probes.h").write_text(PROBES)
    for command in ("gcc -shared -fPIC -o libperfdiff.so runtime.c", "gcc -c runtime.c", "ar rc libperfdiff.a runtime.o"):
        subprocess.run(command.split(), cwd=folder, check=True)
    return Flags(header=folder / "probes.h", runtime=folder)


@pytest.fixture
def probed(tmp_path: Path, flags: Flags) -> Workplace:
    return workplace(tmp_path, plain_environment(), flags)


def test_a_link_with_probes_leaves_its_own_words(probed: Workplace) -> None:
    probed.write({"main.c": MAIN, "twice.c": TWICE})
    assert probed.run("gcc -c main.c twice.c && gcc main.o twice.o -lm -o program").returncode == 0
    (record,) = [json.loads(path.read_text()) for path in (probed.masquerade.folder / "linked").glob("*.json")]
    assert record == {"directory": str(probed.tree), "arguments": ["main.o", "twice.o", "-lm", "-o", "program"]}
    assert not list(probed.masquerade.links.iterdir())


def test_compile_is_recorded(plain: Workplace) -> None:
    plain.write({"src/a.c": TWICE})
    assert plain.run("cd src && gcc -O2 -DX='a b' -c a.c -o a.o").returncode == 0
    (command,) = plain.log.commands
    assert command.file == plain.tree / "src/a.c"
    assert command.directory == plain.tree / "src"
    assert command.compiler == shutil.which("gcc")
    assert command.arguments == ("-O2", "-DX=a b", "-c", "a.c", "-o", "a.o")
    assert not command.cplusplus


@pytest.mark.parametrize(
    ("line", "languages"),
    [
        ("g++ -c a.c", [True]),
        ("gcc -c b.cpp", [True]),
        ("gcc -x c++ -c a.c", [True]),
        ("gcc -xc++ a.c -x none b.cpp empty.s -c", [True, True]),
        ("c99 -c a.c", [False]),
        ("gcc -c empty.s", []),
        ("gcc -S a.c -o a.s", [False]),
    ],
)
def test_language_is_told_by_driver_option_and_suffix(plain: Workplace, line: str, languages: list[bool]) -> None:
    plain.write({"a.c": TWICE, "b.cpp": "int b;\n", "empty.s": ""})
    assert plain.run(line).returncode == 0
    assert [command.cplusplus for command in plain.log.commands] == languages


def test_several_sources_of_one_command_become_one_command_each(plain: Workplace) -> None:
    plain.write({"main.c": MAIN, "twice.c": TWICE})
    assert plain.run("gcc main.c twice.c -o prog && ./prog").returncode == 0
    assert [command.file.name for command in plain.log.commands] == ["main.c", "twice.c"]
    assert plain.log.commands[0].arguments == ("main.c", "-o", "prog")


def test_response_files_are_expanded(plain: Workplace) -> None:
    plain.write({"a.c": TWICE, "flags": "-O1 @more", "more": "-DX=\\\"q\\\" '-DY=a b'\n-c a.c\n"})
    assert plain.run("gcc @flags").returncode == 0
    (command,) = plain.log.commands
    assert command.arguments == ("-O1", '-DX="q"', "-DY=a b", "-c", "a.c")


def test_response_file_words_are_split_as_gcc_does() -> None:
    assert split("a 'b c'\"d\"\n\\'e \"f\\\"g\" '' ") == ["a", "b cd", "'e", 'f"g', ""]


def test_failed_compiles_and_what_is_gone_are_not_reported(plain: Workplace) -> None:
    plain.write({"bad.c": "int x = ;\n", "gone.c": TWICE})
    assert plain.run("gcc -c bad.c").returncode == 1
    assert plain.run("gcc -c gone.c && rm gone.c").returncode == 0
    assert [record["status"] for record in plain.records] == [1, 0]
    assert plain.log.commands == ()


def test_same_source_is_reported_once_per_set_of_flags(plain: Workplace) -> None:
    plain.write({"a.c": TWICE})
    plain.run("gcc -c a.c -o 1.o; gcc -fPIC -DPIC -c a.c -o 2.o; gcc -DOTHER -c a.c -o 3.o -MD -MF 3.d")
    assert [command.arguments[-1] for command in plain.log.commands] == ["1.o", "3.d"]


@pytest.mark.parametrize(
    "line",
    [
        "gcc --version",
        "gcc -dumpmachine",
        "gcc -E a.c",
        "gcc -M a.c",
        "gcc -fsyntax-only a.c",
        "echo 'int x;' | gcc -x c -c - -o x.o",
        "cp a.c conftest.c && gcc -c conftest.c",
        "mkdir -p CMakeFiles/CMakeTmp && cd CMakeFiles/CMakeTmp && cp ../../a.c . && gcc -c a.c",
        "gcc a.o -o prog",
    ],
)
def test_what_compiles_nothing_of_the_project_is_not_recorded(plain: Workplace, line: str) -> None:
    plain.write({"a.c": "int main(void) { return 0; }\n"})
    subprocess.run(["gcc", "-c", "a.c"], cwd=plain.tree, check=True)
    assert plain.run(line).returncode == 0
    assert plain.records == []


def test_links_of_a_plain_build_are_recorded_in_their_order_and_of_each_output_the_last(plain: Workplace) -> None:
    plain.write({"main.c": MAIN, "twice.c": TWICE, "words": "main.o\n-L. -ltwice '-Wl,-rpath,a b'", "sub/x": ""})
    lines = (
        "gcc -c main.c",
        "gcc -shared -fPIC twice.c -o libtwice.so",
        "gcc main.o twice.c -o sub/prog",
        "cd sub && LD_RUN_PATH=here gcc -g ../main.o -L.. -ltwice && cd ..",
        "gcc @words -o sub/prog",
        "gcc main.o -o failed",
        "gcc main.o twice.c -o /dev/null",
        "gcc -r main.o -o part.o",
    )
    for line in lines:
        assert (plain.run(line).returncode == 0) == ("failed" not in line)
    found = read_links(plain.masquerade.links)
    assert [link.output.relative_to(plain.tree).as_posix() for link in found] == ["libtwice.so", "sub/a.out", "sub/prog"]
    library, named, program = found
    assert program.arguments == ("main.o", "-L.", "-ltwice", "-Wl,-rpath,a b", "-o", "sub/prog")
    assert (program.name, program.compiler, program.directory) == ("gcc", shutil.which("gcc"), plain.tree)
    assert named.directory == plain.tree / "sub"
    assert dict(named.environment) == {"LD_RUN_PATH": "here"}
    assert [library.path(place).name for place in library.sources] == ["twice.c"]
    assert [program.path(place).name for place in program.inputs] == ["main.o"]
    for link in found:
        content = link.output.read_bytes()
        assert (link.size, link.digest) == (len(content), zlib.crc32(content))
        assert link.obstacle() is None


def test_links_of_configuration_checks_are_not_recorded(plain: Workplace) -> None:
    plain.write({"conftest.c": MAIN, "twice.c": TWICE})
    assert plain.run("gcc conftest.c twice.c -o conftest").returncode == 0
    assert read_links(plain.masquerade.links) == ()


def test_links_of_probed_builds_are_not_recorded(probed: Workplace) -> None:
    probed.write({"main.c": MAIN, "twice.c": TWICE})
    assert probed.run("gcc main.c twice.c -o prog").returncode == 0
    assert read_links(probed.masquerade.links) == ()


def test_output_and_status_are_the_compilers(plain: Workplace) -> None:
    plain.write({"bad.c": 'int f(void) { return "x"; }\n#error no\n'})
    for line in ("gcc -c bad.c", "gcc -E -P bad.c", "gcc --version", "gcc", "clang -c bad.c", "gcc missing.c"):
        real = subprocess.run(line.split(), cwd=plain.tree, env=plain_environment(), capture_output=True, text=True, check=False)
        seen = plain.run(line)
        assert (seen.returncode, seen.stdout, seen.stderr) == (real.returncode, real.stdout, real.stderr)


def test_killed_compiler_ends_as_a_shell_tells_it(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gcc").write_text("#!/bin/sh\nkill -9 $$\n")
    (tools / "gcc").chmod(0o755)
    place = workplace(tmp_path, {"PATH": f"{tools}:{os.environ['PATH']}"})
    place.write({"a.c": TWICE})
    assert place.run("gcc -c a.c").returncode == 137


def test_compiler_that_is_not_installed_is_not_found(plain: Workplace) -> None:
    plain.write({"a.c": TWICE})
    assert plain.run("gcc-3.0 -c a.c").returncode == 127


@pytest.mark.parametrize(
    ("choice", "seen"), [("clang", "clang"), ("ccache gcc -m64", "ccache gcc -m64"), ("/usr/bin/clang -O1", "clang -O1"), ("tcc", "tcc")]
)
def test_chosen_compiler_is_called_by_name(tmp_path: Path, choice: str, seen: str) -> None:
    place = workplace(tmp_path, {**plain_environment(), "CC": choice})
    assert place.masquerade.environment["CC"] == seen


def test_compiler_cache_on_path_is_passed_over(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ccache").write_text('#!/bin/sh\necho "cached answer" >&2\nexit 3\n')
    (tools / "ccache").chmod(0o755)
    (tools / "gcc").symlink_to("ccache")
    place = workplace(tmp_path, {"PATH": f"{tools}:{os.environ['PATH']}"})
    place.write({"a.c": TWICE})
    assert place.run("gcc -c a.c").returncode == 0
    assert place.log.commands[0].compiler == shutil.which("gcc")


def test_compiler_cache_as_prefix_reaches_the_stand_in(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ccache").write_text('#!/bin/sh\nexec "$@"\n')
    (tools / "ccache").chmod(0o755)
    place = workplace(tmp_path, {"PATH": f"{tools}:{os.environ['PATH']}"})
    place.write({"a.c": TWICE})
    assert place.run("ccache gcc -c a.c").returncode == 0
    assert len(place.log.commands) == 1


def test_build_without_environment_is_still_recorded(plain: Workplace) -> None:
    plain.write({"a.c": TWICE})
    assert plain.run(f"env -i PATH={plain.masquerade.environment['PATH']} gcc -c a.c").returncode == 0
    assert len(plain.log.commands) == 1


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_probes_are_compiled_and_linked(probed: Workplace, compiler: str) -> None:
    probed.write({"main.c": MAIN, "twice.c": TWICE_PROBED})
    steps = (
        f"{compiler} -c main.c",
        f"{compiler} -std=c89 -pedantic -Wall -Wextra -Wshadow -Werror -c twice.c",
        f"{compiler} main.o twice.o -o prog",
    )
    for step in steps:
        answer = probed.run(step)
        assert (answer.returncode, answer.stderr) == (0, "")
    assert probed.run("./prog").stderr == "probe 1\n"
    assert probed.log.dropped == ()


@pytest.mark.parametrize(("kind", "calls"), [(FlagKind.PROBED, False), (FlagKind.SURVEYED, True)])
def test_where_all_functions_have_probes_these_are_calls(kind: FlagKind, calls: bool, tmp_path: Path, flags: Flags) -> None:
    place = workplace(tmp_path, plain_environment(), replace(flags, kind=kind))
    place.write({"a.c": "#ifdef PD_CALLED\nint calls;\n#else\nint inline_part;\n#endif\n"})
    assert place.run("gcc -c a.c").returncode == 0
    assert place.run("nm a.o").stdout.endswith("calls\n" if calls else "inline_part\n")


@pytest.mark.parametrize(
    "line",
    [
        "gcc main.c twice.c -o prog",
        "gcc -static main.c twice.c -o prog",
        "gcc -static -x c main.c twice.c -o prog",
        "gcc -flto -O2 main.c twice.c -o prog",
        "gcc -Wl,--as-needed -Wl,-z,defs main.c twice.c -o prog",
        "gcc -fPIC -shared -Wl,-z,defs twice.c -o libtwice.so && gcc main.c -L. -ltwice -Wl,-rpath,. -o prog",
        "gcc -c twice.c && ar rc libtwice.a twice.o && gcc main.c -L. -ltwice -o prog",
        "gcc -c twice.c && gcc -r -nostdlib twice.o -o part.o && gcc main.c part.o -o prog",
        "g++ main.c twice.c -o prog",
        "gcc -save-temps main.c twice.c -o prog",
        "gcc -E twice.c -o twice.i && gcc main.c -c && gcc -c twice.i && gcc main.o twice.o -o prog && echo probe 1 >&2",
    ],
)
def test_every_way_to_link_finds_the_runtime(probed: Workplace, line: str) -> None:
    probed.write({"main.c": MAIN, "twice.c": TWICE_PROBED})
    answer = probed.run(f"{line} && ./prog")
    assert (answer.returncode, answer.stderr) == (0, "probe 1\n")


def test_configuration_checks_get_no_probes(probed: Workplace) -> None:
    probed.write({"conftest.c": "#ifdef PD_1\n#error probed\n#endif\nint main(void) { return 0; }\n"})
    assert probed.run("gcc conftest.c -o conftest && ! readelf -d conftest | grep perfdiff").returncode == 0


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++"])
def test_probe_that_does_not_compile_is_dropped_and_named(probed: Workplace, compiler: str) -> None:
    source = "int bad(int n) {PD_2\n return n; }\nint worse(int n) {PD_3\n if (PD_B_4_0 n > 1)) return 1;\n return n; }\n"
    probed.write({"main.c": MAIN, "twice.c": TWICE_PROBED + source})
    answer = probed.run(f"{compiler} -Wall -Werror -Wno-deprecated -c twice.c")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert {(drop.probe, drop.file) for drop in probed.log.dropped} == {(2, "twice.c"), (3, "twice.c"), (4, "twice.c")}
    assert "pd_undeclared_function_of_2" in next(drop.reason for drop in probed.log.dropped if drop.probe == 2)
    probed.run(f"{compiler} -c main.c && {compiler} main.o twice.o -o prog")
    assert probed.run("./prog").stderr == "probe 1\n"


@pytest.mark.parametrize("compiler", ["gcc -fno-diagnostics-show-caret", "clang -fno-caret-diagnostics"])
def test_probe_that_does_not_compile_is_named_where_errors_do_not_show_their_text(probed: Workplace, compiler: str) -> None:
    probed.write({"twice.c": f"{TWICE_PROBED}int bad(int n) {{PD_2\n return n; }}\n"})
    assert probed.run(f"{compiler} -Wall -Werror -c twice.c").returncode == 0
    assert [drop.probe for drop in probed.log.dropped] == [2]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_program_without_libc_is_linked_without_runtime_beside_others_that_have_it(probed: Workplace, compiler: str) -> None:
    probed.write({"main.c": MAIN, "twice.c": TWICE_PROBED, "boot.c": "void _start(void) {PD_1 for (;;); }\n"})
    commands = [f"{compiler} -c boot.c", f"{compiler} -nostdlib -static boot.o -o boot", f"{compiler} main.c twice.c -o prog"]
    assert [probed.run(command).returncode for command in commands] == [0, 0, 0]
    assert probed.run("./prog").stderr == "probe 1\n"


@pytest.mark.parametrize("name", ["with space", "with, comma", os.fsdecode(b"caf\xe9")], ids=["space", "comma", "no UTF-8"])
def test_runtime_is_found_wherever_the_cache_lies(tmp_path: Path, flags: Flags, name: str) -> None:
    runtime = tmp_path / name
    shutil.copytree(flags.runtime, runtime)
    (tmp_path / "beside").mkdir()
    place = workplace(tmp_path / "beside", plain_environment(), Flags(runtime / "probes.h", runtime))
    place.write({"main.c": MAIN, "twice.c": TWICE_PROBED})
    assert place.run("gcc main.c twice.c -o prog").stderr == ""
    assert place.run("./prog").stderr == "probe 1\n"


def test_functions_that_other_files_may_inline_keep_their_probes_where_clang_is_strict(tmp_path: Path, flags: Flags) -> None:
    header = tmp_path / "probes.h"
    header.write_text(PROBES.replace('#include "perfdiff_probe.h"', "static int pd_here(int probe) { return probe; }"))
    place = workplace(tmp_path, plain_environment(), Flags(header, flags.runtime))
    place.write({"twice.c": f"inline {TWICE_PROBED}extern int twice(int n);\n"})
    answer = place.run("clang -std=c99 -pedantic-errors -Wall -Wextra -Werror -c twice.c")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert place.log.dropped == ()


def test_all_probes_of_a_unit_go_where_the_error_names_none(tmp_path: Path, flags: Flags) -> None:
    header = tmp_path / "broken.h"
    header.write_text("#ifdef PD_NONE\n#define PD_1\n#else\n#define PD_1\n#error cannot be included here\n#endif\n")
    place = workplace(tmp_path, plain_environment(), Flags(header, flags.runtime))
    place.write({"twice.c": TWICE_PROBED})
    assert place.run("gcc -c twice.c").returncode == 0
    (drop,) = place.log.dropped
    assert (drop.probe, drop.file) == (None, "twice.c")
    assert "cannot be included here" in drop.reason


def test_fault_of_the_project_is_shown_as_it_is(probed: Workplace) -> None:
    probed.write({"twice.c": "int twice(int n) {PD_1\n return missing; }\n"})
    answer = probed.run("gcc -c twice.c")
    assert answer.returncode == 1
    assert "'missing' undeclared" in answer.stderr
    assert answer.stderr.count("error:") == 1
    assert probed.log.dropped == ()


def test_warnings_of_the_project_are_shown_once(probed: Workplace) -> None:
    probed.write({"twice.c": "int twice(int n) {PD_2\n int unused; return 2 * n; }\n"})
    answer = probed.run("gcc -Wall -c twice.c")
    assert answer.returncode == 0
    assert answer.stderr.count("warning:") == 1


@pytest.mark.parametrize(
    "line",
    [
        "gcc -x c-header pre.h -o pre.h.gch && gcc -Winvalid-pch -Werror -include pre.h main.c -o prog",
        "clang -x c-header pre.h -o pre.pch && clang -Werror -include-pch pre.pch main.c -o prog",
        "clang -x c-header pre.h -o pre.pch && clang -Xclang -include-pch -Xclang pre.pch -Xclang -include -Xclang pre.h main.c -o prog",
    ],
)
def test_precompiled_headers_do_not_hide_probes(probed: Workplace, line: str) -> None:
    header = "#ifndef PRE\n#define PRE\nstatic inline int half(int n) {PD_1 return n / 2; }\n#endif\n"
    probed.write({"pre.h": header, "main.c": "int main(void) { return half(0); }\n"})
    answer = probed.run(f"{line} && ./prog")
    assert (answer.returncode, answer.stderr) == (0, "probe 1\n")


def test_guilt_is_read_off_errors_not_off_warnings() -> None:
    gcc = (
        "a.c:1:1: warning: unused [-Wunused]\n  1 | int f() {PD_1\n"
        "a.c:2:3: error: bad\nprobes.h:3: note: in expansion of macro 'PD_B_22_3'\n"
    )
    assert guilty_probes(gcc) == {22}
    assert guilty_probes("a.c:2:3: Fehler: falsch\nAnmerkung: bei Substitution des Makros »PD_7«\n") == {7}


@pytest.mark.parametrize(
    ("line", "links", "compiles"),
    [
        ("gcc -o prog a.o", True, False),
        ("gcc a.c", True, True),
        ("gcc -c a.c -o prog", False, True),
        ("gcc -MD -MF a.d -MT a.o -c a.c", False, True),
        ("gcc -include config.h -isystem dir -x c -c a", False, True),
        ("gcc -M a.c", False, False),
        ("gcc -v", False, False),
        ("gcc -Wl,-r a.o b.o", False, False),
        ("g++ all.hpp", False, False),
        ("gcc -Xlinker -z -Xlinker now a.o", True, False),
        ("clang -MJ a.json", False, False),
        ("clang -Xanalyzer a.c -Xarch_device b.o", False, False),
    ],
)
def test_purpose_of_a_call_is_understood(line: str, links: bool, compiles: bool) -> None:
    name, *arguments = line.split()
    call = ParsedCall(name, arguments)
    assert (call.links, call.compiles) == (links, compiles)


@pytest.mark.parametrize(
    ("compiler", "kind", "aligned"),
    [
        ("gcc", "probed", ["-falign-functions=64", "-falign-loops=64", "-falign-jumps=32"]),
        ("clang", "probed", ["-falign-functions=64", "-falign-loops=64"]),
        ("gcc", "counted", []),
    ],
)
def test_code_that_is_timed_lies_at_equal_places_before_what_the_project_asks_for(compiler: str, kind: str, aligned: list[str]) -> None:
    """Counts do not depend on where code lies, times do."""
    added = Additions(ParsedCall(compiler, ["-O2", "-c", "a.c"]), compiler, "", Build("folder", "tree", "header.h", "runtime", kind))
    assert [word for word in added.probing if word.startswith("-falign")] == aligned


@pytest.mark.parametrize(("compiler", "kind", "is_spared"), [("gcc", "probed", True), ("gcc", "counted", True), ("clang", "probed", False)])
def test_variables_are_not_followed_in_builds_whose_debugging_information_nobody_reads(compiler: str, kind: str, is_spared: bool) -> None:
    added = Additions(ParsedCall(compiler, ["-O2", "-g", "-c", "a.c"]), compiler, "", Build("folder", "tree", "header.h", "runtime", kind))
    assert [word for word in added.probing if "var-tracking" in word] == list(UNTRACKED_GCC) * is_spared


@pytest.mark.parametrize(
    ("compiler", "kind", "is_spared"), [("gcc", "surveyed", True), ("gcc", "probed", False), ("clang", "surveyed", False)]
)
def test_gcc_analyses_no_pointers_in_builds_that_are_only_surveyed(compiler: str, kind: str, is_spared: bool) -> None:
    added = Additions(ParsedCall(compiler, ["-O2", "-c", "a.c"]), compiler, "", Build("folder", "tree", "header.h", "runtime", kind))
    assert ("-fno-tree-pta" in added.probing) is is_spared


def test_code_is_the_same_whether_variables_are_followed_or_not(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        "static inline int g(int a, int b) { int c = a * b; return c > 7 ? c - a : c + b; }\n"
        "int f(int n, const int *a) { int s = 0; for (int i = 0; i < n; i++) { int t = g(a[i], s); s += g(t, i); } return s; }\n"
    )

    def code(*words: str) -> bytes:
        subprocess.run(["gcc", "-O2", "-g", *words, "-c", "a.c"], cwd=tmp_path, check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", "a.o", "text"], cwd=tmp_path, check=True)
        return (tmp_path / "text").read_bytes()

    assert code() == code(*UNTRACKED_GCC) != b""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_take_what_aligns_code_without_a_word(compiler: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int f(int n, const int *a) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }\n")
    (tmp_path / "header.h").write_text("")
    added = Additions(
        ParsedCall(compiler, ["-c", "a.c"]), compiler, "", Build("folder", "tree", str(tmp_path / "header.h"), str(tmp_path), "probed")
    )
    command = [compiler, *added.probing, "-O2", "-Wall", "-Wextra", "-Werror", "-c", "a.c", "-o", "a.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_aligned_in_a_plain_build() -> None:
    assert not Additions(ParsedCall("gcc", ["-O2", "a.o"]), "gcc", "", Build("folder", "tree", "header.h", "runtime", "probed")).probing
