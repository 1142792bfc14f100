"""Options of a build that its benchmarks, tests and examples wait for: which there are, in which order they are tried, with what result."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff.build.cache import BuildCache
from perfdiff.build.options import off_in
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.configuration import buildsystem
from perfdiff.configuration.switches import switched_off, tries
from perfdiff.deadline import Deadline
from perfdiff.errors import MeasurementError
from perfdiff.exploring import explored
from perfdiff.measuring import guesses
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.guesses import EarlyRuns, prepared
from perfdiff.measuring.site import Site
from perfdiff.measuring.unaltered import has_changed
from perfdiff.progress import Progress, Silent, Stopwatch
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from programs import first_two
from test_measuring import Steps

integration = pytest.mark.integration
needs_cmake = pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="needs make")
needs_automake = pytest.mark.skipif(not (shutil.which("automake") and shutil.which("make")), reason="needs automake and make")
needs_meson = pytest.mark.skipif(not (shutil.which("meson") and shutil.which("ninja")), reason="needs meson and ninja")


@pytest.mark.parametrize(
    ("cache", "options"),
    [
        ("SHOP_TESTS:BOOL=OFF\nSHOP_BENCH:BOOL=no\nSHOP_DOCS:BOOL=OFF\nSHOP_SHARED:BOOL=OFF\n", ["-DSHOP_BENCH=ON", "-DSHOP_TESTS=ON"]),
        ("SHOP_BUILD_SAMPLES:BOOL=OFF\nDOWNSAMPLE:BOOL=OFF\nDEMOCRACY:BOOL=OFF\n", ["-DSHOP_BUILD_SAMPLES=ON"]),
        ("BUILD_FUZZ_TESTS:BOOL=OFF\nBUILD_EXAMPLES:BOOL=OFF\n", ["-DBUILD_FUZZ_TESTS=ON", "-DBUILD_EXAMPLES=ON"]),
        ("DISABLE_TESTS:BOOL=OFF\nNO_BENCH:BOOL=OFF\nTESTS_ONLY:BOOL=OFF\nINSTALL_TESTS:BOOL=OFF\n", []),
        ("TEST_COVERAGE:BOOL=OFF\nSHOP_TEST_ASAN:BOOL=OFF\nTESTS_VALGRIND:BOOL=OFF\n", []),
        ("BUILD_TESTS:BOOL=ON\nCMAKE_TESTS:BOOL=OFF\nBENCHMARK_ENABLE_TESTING:BOOL=OFF\n", []),
    ],
)
def test_options_of_cmake_that_are_off_are_told_the_most_telling_first(tmp_path: Path, cache: str, options: list[str]) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build/CMakeCache.txt").write_text(f"CMAKE_BUILD_TYPE:STRING=Release\n{cache}")
    assert list(switched_off(tmp_path)) == options


@pytest.mark.parametrize(("cache", "options"), [("", ["-DBUILD_TESTING=ON"]), ("BUILD_TESTING:BOOL=ON\n", [])])
def test_tests_that_a_project_asks_for_by_the_name_that_cmake_has_for_them_are_off_without_it(
    tmp_path: Path, cache: str, options: list[str]
) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build/CMakeCache.txt").write_text(f"CMAKE_BUILD_TYPE:STRING=Release\n{cache}")
    (tmp_path / "CMakeLists.txt").write_text("if(BUILD_TESTING)\n  add_subdirectory(test)\nendif()\n")
    assert list(switched_off(tmp_path)) == options


def test_features_of_a_configure_script_that_are_off_are_told_where_it_ran(tmp_path: Path) -> None:
    (tmp_path / "configure").write_text(
        "cat <<EOF\n  --enable-tests          build tests\n  --disable-shared  no library\n  --enable-benchmarks\n  --enable-debug\nEOF\n"
    )
    assert list(switched_off(tmp_path)) == []
    (tmp_path / "config.status").touch()
    assert list(switched_off(tmp_path)) == ["--enable-benchmarks", "--enable-tests"]


def test_benchmarks_and_tests_are_tried_together_first_then_each_kind_and_then_single_options() -> None:
    options = ["-DBUILD_BENCH=ON", "-DUNIT_TESTS=ON", "-DBUILD_FUZZERS=ON", "-DPERF=ON", "-DSAMPLES=ON"]
    bench, tests, fuzzers, perf, samples = options
    assert tries(options) == [(bench, perf, tests), (bench, perf), (tests,), (fuzzers,), (samples,), (bench,)]
    assert tries(["--enable-tests"]) == [("--enable-tests",)]
    assert tries([]) == []


def test_only_what_is_off_on_both_sides_is_switched_on(tmp_path: Path) -> None:
    for side, caches in (("base", "A_TESTS:BOOL=OFF\nB_TESTS:BOOL=OFF\n"), ("head", "C_TESTS:BOOL=OFF\nB_TESTS:BOOL=OFF\n")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "CMakeCache.txt").write_text(caches)
    assert off_in([tmp_path / "base", tmp_path / "head"]) == ("-DB_TESTS=ON",)


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("CMakeLists.txt", "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release '-DX=a b' && cmake --build build --parallel $(nproc)"),
        ("meson.build", "meson setup build --buildtype=release '-DX=a b' && ninja -C build"),
        ("configure.ac", "(test -x configure || autoreconf -fi) && ./configure '-DX=a b' && make -j$(nproc)"),
    ],
)
def test_options_are_given_to_what_configures(file: str, command: str) -> None:
    (system,) = (system for system in buildsystem.KNOWN if system.file == file)
    assert system.switched(["-DX=a b"]) == command
    assert buildsystem.guessed(system.command) == system


def test_make_has_no_options_of_a_project() -> None:
    assert buildsystem.guessed("make -j$(nproc)") is None


LIBRARY = """
#include "shop.h"
int total(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += i % 7; return sum; }
"""
HEADER = "int total(int n);\n"
USER = '#include "shop.h"\n#include <stdio.h>\nint main(void) { printf("%d\\n", total(30000000)); return 0; }\n'
SHOP = {
    "shop.c": LIBRARY,
    "shop.h": HEADER,
    "test/test_shop.c": USER,
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.14)
project(shop C)
option(SHOP_TESTS "Build tests" OFF)
add_library(shop STATIC shop.c)
target_include_directories(shop PUBLIC ${CMAKE_SOURCE_DIR})
if(SHOP_TESTS)
  enable_testing()
  add_executable(test_shop test/test_shop.c)
  target_link_libraries(test_shop shop)
  add_test(NAME total COMMAND test_shop)
endif()
""",
}
NEEDS_MORE = 'option(SHOP_BENCH "Build benchmarks" OFF)\nif(SHOP_BENCH)\n  find_package(NoSuchLibraryAnywhere REQUIRED)\nendif()\n'
MESON = {
    **{name: SHOP[name] for name in ("shop.c", "shop.h", "test/test_shop.c")},
    "meson_options.txt": "option('tests', type: 'feature', value: 'disabled')\n",
    "meson.build": """
project('shop', 'c')
shop = static_library('shop', 'shop.c')
if get_option('tests').enabled()
  test('total', executable('test_shop', 'test/test_shop.c', link_with: shop))
endif
""",
}
MAKE = {
    **{name: SHOP[name] for name in ("shop.c", "shop.h", "test/test_shop.c")},
    "Makefile": "libshop.a: shop.o\n\tar rcs $@ $<\ncheck: libshop.a\n\t$(MAKE) -C test check\n",
    "test/Makefile": "CFLAGS = -O2 -I..\ncheck: unit\n\t./unit\nunit: test_shop.o ../libshop.a\n\t$(CC) -o $@ $^\n",
}
AUTOMAKE = {
    **{name: SHOP[name] for name in ("shop.c", "shop.h", "test/test_shop.c")},
    "configure.ac": "AC_INIT([shop], [1])\nAM_INIT_AUTOMAKE([foreign subdir-objects])\nAC_PROG_CC\nAC_PROG_RANLIB\n"
    "AC_CONFIG_FILES([Makefile test/Makefile])\nAC_OUTPUT\n",
    "Makefile.am": "SUBDIRS = . test\nnoinst_LIBRARIES = libshop.a\nlibshop_a_SOURCES = shop.c\n",
    "test/Makefile.am": "check_PROGRAMS = unit\nTESTS = unit\nunit_SOURCES = test_shop.c\n"
    "unit_CPPFLAGS = -I$(top_srcdir)\nunit_LDADD = ../libshop.a\n",
}
LIBTOOL = {name: text.replace("AC_PROG_RANLIB", "LT_INIT") for name, text in AUTOMAKE.items()} | {
    "Makefile.am": "SUBDIRS = . test\nlib_LTLIBRARIES = libshop.la\nlibshop_la_SOURCES = shop.c\n",
    "test/Makefile.am": AUTOMAKE["test/Makefile.am"].replace("libshop.a", "libshop.la"),
}
HEADERS = {
    "total.hpp": "#pragma once\ninline int total(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += i % 7; return sum; }\n",
    "test/test_total.cpp": '#include "../total.hpp"\n#include <cstdio>\nint main() { std::printf("%d\\n", total(30000000)); }\n',
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.14)
project(headers CXX)
option(HEADERS_TESTS "Build tests" OFF)
if(HEADERS_TESTS)
  enable_testing()
  add_executable(test_total test/test_total.cpp)
  add_test(NAME total COMMAND test_total)
endif()
""",
}


def changed(files: Mapping[str, str]) -> list[dict[str, str]]:
    """Return two revisions of a project, of which the second sums up in another way."""
    return [dict(files), {name: text.replace("i % 7", "i % 5") for name, text in files.items()}]


def ready(room: Path, files: Mapping[str, str], deadline: Deadline | None = None, progress: Progress | None = None) -> tuple[Bench, Site]:
    """Return what is measured of two revisions of a project without a configuration."""
    request = replace(first_two(room, changed(files)), deadline=deadline or Deadline())
    pins = resolve(find_repository(request.repository), request.revisions, snapshots=request.cache / "snapshots", apart=())
    (room / "plans").mkdir()
    with BuildCache(request.cache) as builds:
        bench = Bench(request, pins, builds, room / "plans", request.packs, ProcessExecutor(), Stopwatch(progress or Silent()))
        with closing(bench.upkeep):
            return prepared(bench, EarlyRuns())


@integration
@pytest.mark.parametrize(
    ("files", "command", "name"),
    [
        pytest.param(MAKE, "make -C test unit", "make check", marks=needs_make, id="make"),
        pytest.param(AUTOMAKE, "make check TESTS=", "test/unit", marks=needs_automake, id="automake"),
    ],
)
def test_what_a_target_of_make_compiles_before_it_runs_is_made_by_the_build(
    tmp_path: Path, files: Mapping[str, str], command: str, name: str
) -> None:
    bench, site = ready(tmp_path, files)
    assert bench.request.config.build.command.endswith(f"make -j$(nproc) && {command}")
    assert [workload.name for workload in bench.request.config.workloads] == [name]
    assert f"reaches the change, built with {command}; what is run: {name}" in site.notes[-1].text


@integration
@needs_make
def test_what_gives_nothing_to_run_is_built_again_before_functions_are_found_where_time_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guesses, "LONG_SHARE", 0.0)
    progress = Steps()
    bench, _ = ready(tmp_path, MAKE, Deadline(120.0), progress)
    assert [workload.name for workload in bench.request.config.workloads] == ["make check"]
    assert progress.order.index("finding functions") > progress.order.index("comparing whole runs of all cases")


MACROS = {
    "src/shop.h": "#define STEP(i) (i % 7)\n#define EACH(i) STEP(i)\n",
    "tests/test_each.c": '#include "shop.h"\n'
    "int main(void) { int sum = 0; for (int i = 0; i < 30000000; i++) sum += EACH(i); return sum == 1; }\n",
    "tests/test_none.c": "int main(void) { return 0; }\n",
    "tests/Makefile": "CFLAGS = -I../src\nall: test_each test_none\n",
}


@integration
@needs_make
def test_what_macros_of_a_library_make_in_its_tests_is_what_cases_are_to_reach(tmp_path: Path) -> None:
    bench, site = ready(tmp_path, MACROS)
    assert [workload.name for workload in bench.request.config.workloads] == ["tests/test_each"]
    assert site.notes[-1].text.startswith("1 of 2 cases of programs by themselves reaches the change; what is run: tests/test_each")
    assert has_changed(site)


@integration
@pytest.mark.skipif(not shutil.which("libtoolize"), reason="needs libtool")
@needs_automake
def test_programs_behind_scripts_of_libtool_are_run_themselves(tmp_path: Path) -> None:
    bench, _ = ready(tmp_path, LIBTOOL)
    (workload,) = bench.request.config.workloads
    assert workload.command == "cd test && srcdir=. LD_LIBRARY_PATH=../.libs .libs/unit"


@integration
@pytest.mark.parametrize(
    ("files", "option"),
    [
        pytest.param(SHOP, "-DSHOP_TESTS=ON", marks=needs_cmake, id="cmake"),
        pytest.param(MESON, "-Dtests=enabled", marks=needs_meson, id="meson"),
        pytest.param(HEADERS, "-DHEADERS_TESTS=ON", marks=needs_cmake, id="headers"),
    ],
)
def test_tests_that_are_off_are_switched_on_where_nothing_else_can_be_run(tmp_path: Path, files: Mapping[str, str], option: str) -> None:
    bench, site = ready(tmp_path, files)
    assert option in bench.request.config.build.command
    assert [workload.name for workload in bench.request.config.workloads] == ["total"]
    assert f"reaches the change, built with {option}; what is run: total" in site.notes[-1].text


IDLE = {
    **SHOP,
    "test/test_other.c": "static int half(int n) { return n / 2; }\nint main(int argc, char **argv) { return half(argc) * (argv == 0); }\n",
    "CMakeLists.txt": SHOP["CMakeLists.txt"]
    + "enable_testing()\nadd_executable(other test/test_other.c)\nadd_test(NAME other COMMAND other)\n",
}


@integration
@needs_cmake
def test_tests_that_are_off_are_switched_on_where_those_that_run_do_not_reach_the_change(tmp_path: Path) -> None:
    bench, site = ready(tmp_path, IDLE)
    assert "-DSHOP_TESTS=ON" in bench.request.config.build.command
    assert [workload.name for workload in bench.request.config.workloads] == ["total"]
    assert not site.is_idle


@integration
@needs_cmake
def test_what_runs_is_run_where_options_give_nothing_that_reaches_the_change_either(tmp_path: Path) -> None:
    lists = IDLE["CMakeLists.txt"].replace("test_shop test/test_shop.c", "test_shop test/test_other.c")
    bench, site = ready(tmp_path, {**IDLE, "CMakeLists.txt": lists})
    assert "SHOP_TESTS" not in bench.request.config.build.command
    assert [workload.name for workload in bench.request.config.workloads] == ["other"]
    assert site.is_idle
    assert site.notes[-1].text == "built with -DSHOP_TESTS=ON, no case reaches the change either"


@integration
@needs_cmake
def test_what_cannot_be_built_is_left_off_where_others_can(tmp_path: Path) -> None:
    lists = SHOP["CMakeLists.txt"] + NEEDS_MORE
    bench, _ = ready(tmp_path, {**SHOP, "CMakeLists.txt": lists})
    assert "-DSHOP_TESTS=ON" in bench.request.config.build.command
    assert "SHOP_BENCH" not in bench.request.config.build.command
    assert not bench.cache.apart, "further builds are made at the same time"


@integration
@needs_cmake
def test_options_that_do_not_help_are_told_with_what_failed(tmp_path: Path) -> None:
    lists = SHOP["CMakeLists.txt"].replace("enable_testing()", "enable_testing()\n  find_package(NoSuchLibraryAnywhere REQUIRED)")
    with pytest.raises(MeasurementError, match="nothing to run was found in what was built") as raised:
        ready(tmp_path, {**SHOP, "CMakeLists.txt": lists})
    assert raised.value.slug == "no-benchmarks"
    assert "-DSHOP_TESTS=ON (is off in build/CMakeCache.txt" in str(raised.value)
    assert "the build with -DSHOP_TESTS=ON exited 1 in " in str(raised.value)
    assert "NoSuchLibraryAnywhere" in str(raised.value)


@integration
@needs_cmake
def test_init_switches_options_on_and_writes_down_what_worked(tmp_path: Path) -> None:
    tryout = explored(first_two(tmp_path, changed(SHOP)), [], Silent())
    assert tryout.works
    assert tryout.config is not None
    assert "-DCMAKE_BUILD_TYPE=Release -DSHOP_TESTS=ON && cmake --build" in tryout.config.build.command
