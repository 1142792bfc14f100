"""Plain builds in several layouts: code and data lie elsewhere, and nothing else is different."""

from __future__ import annotations

import math
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from perfdiff.build import archives, layouts, objectfiles
from perfdiff.build.built import Built
from perfdiff.build.cache import BuildCache
from perfdiff.build.layouts import Layouts
from perfdiff.build.linker import Linker
from perfdiff.build.links import read_links
from perfdiff.build.masquerade import set_up_masquerade
from perfdiff.build.patterns import Pattern
from perfdiff.collect.built.workshop import Workshop
from perfdiff.collect.execution.executor import Command, ProcessExecutor
from perfdiff.collect.runs.spread import LayoutSpread
from perfdiff.collect.trees.upkeep import Chores, Upkeep
from perfdiff.config import BuildConfig
from perfdiff.languages.c.pack import C
from perfdiff.languages.packs import Packs
from perfdiff.languages.protocol import CompileCommand
from perfdiff.progress import Silent
from perfdiff.records.schema import Note, Phase, Side
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from programs import git

pytestmark = pytest.mark.integration

COUNT = 3
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "CFLAGS", "LDFLAGS")}

MAIN = """\
#include <stdio.h>
int one(int), two(int), three(int);
static const int numbers[] = {1, 2, 3};
int state = 4, zeroed[8];
int main(void) { printf("%d\\n", one(numbers[0]) + two(numbers[1]) + three(numbers[2]) + state + zeroed[3]); return 0; }
"""
PARTS = {
    "one.c": "int one(int n) { return n * 3; }\n",
    "two.c": "extern int state; int two(int n) { return n * 5 + state; }\n",
    "three.c": "int three(int n) { return n % 7; }\n",
}
SOURCES = {"main.c": MAIN, **PARTS}
PRINTED = "24\n"
FUNCTIONS = ("main", "one", "two", "three")
OBJECTS = "prog: main.o one.o two.o three.o\n\t$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)\n"

IDLE = Command("true", Path("/"), ENVIRONMENT, 10.0, (0,), "idle")

Make = Callable[..., Built]


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[BuildCache]:
    with BuildCache(tmp_path / "cache") as opened:
        yield opened


@pytest.fixture
def make(cache: BuildCache) -> Make:
    """Build files by a command under the masquerade, in a folder as the cache has it."""

    def built(files: dict[str, str], command: str, name: str = "ab" * 16) -> Built:
        entry = cache.root / "trees" / name
        tree = entry / "source"
        tree.mkdir(parents=True)
        for path, text in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        masquerade = set_up_masquerade(entry / "build", tree, ENVIRONMENT)
        subprocess.run(command, shell=True, cwd=tree, env=dict(masquerade.environment), check=True, capture_output=True)
        compiled = CompileCommand(tree / next(iter(files)), tree, "cc", (), cplusplus=False)
        return Built(Phase.PLAIN, tree, tree, (compiled,), (), (), 0.1, links=read_links(masquerade.links))

    return built


@dataclass(frozen=True)
class Varied:
    """A build whose tree is in one of its layouts at a time."""

    built: Built
    spread: LayoutSpread

    def __iter__(self) -> Iterator[Path]:
        """Yield the build's folder in each layout."""
        for number in range(self.spread.count):
            with self.spread.upkeep.around(self.built.tree, IDLE, Chores("w", 0, number), ProcessExecutor()):
                yield self.built.folder

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.spread.notes


def varied(built: Built, cache: BuildCache, *, count: int = COUNT, seed: int = 1, asked: int = COUNT) -> Varied:
    room = Path(tempfile.mkdtemp(dir=cache.root))
    spread = LayoutSpread({Side.BASE: Layouts(built, ENVIRONMENT, room, count)}, Upkeep(), seed, count)
    spread.grow(asked)
    return Varied(built, spread)


def whole(built: Built, cache: BuildCache) -> Varied:
    """Return the layouts of a build of which everything can be varied."""
    found = varied(built, cache)
    assert found.notes == ()
    assert found.spread.count == COUNT
    return found


def printed(folder: Path, program: str = "prog") -> str:
    return subprocess.run([folder / program], capture_output=True, text=True, check=True).stdout


def addresses(program: Path) -> dict[str, int]:
    lines = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return {words[2]: int(words[0], 16) for words in map(str.split, lines) if len(words) == 3}


def places(found: Varied, name: str, step: int, program: str = "prog") -> set[int]:
    """Return where a symbol lies within lines or pages, over all layouts."""
    return {addresses(folder / program)[name] % step for folder in found}


def reason(built: Built, cache: BuildCache) -> str:
    """Return why a build is to be had in one layout only."""
    found = varied(built, cache)
    assert found.spread.count == 1
    (note,) = found.notes
    assert note.slug == "one-layout"
    return note.text


@pytest.mark.parametrize(
    ("compiler", "command"),
    [
        pytest.param("gcc", "make", id="gcc, objects"),
        pytest.param("gcc", "$CC -O2 -x c main.c one.c two.c three.c -o prog -lm", id="gcc, one step"),
        pytest.param("clang", "$CC -O2 -MD -Wall -Werror main.c one.c -Wl,-O1 two.c three.c -oprog -lm", id="clang, one step"),
    ],
)
def test_functions_and_data_lie_elsewhere_and_the_program_does_the_same(cache: BuildCache, make: Make, compiler: str, command: str) -> None:
    found = whole(make({**SOURCES, "Makefile": OBJECTS}, f"export CC={compiler} CFLAGS=-O2; {command}"), cache)
    assert {printed(folder) for folder in found} == {PRINTED}
    names = (*FUNCTIONS, "state", "zeroed")
    within_lines = [tuple(addresses(folder / "prog")[name] % 64 for name in names) for folder in found]
    assert len(set(within_lines)) == COUNT
    assert [name for name in names if len(places(found, name, 4096)) < COUNT] == []
    orders = {tuple(sorted(FUNCTIONS, key=addresses(folder / "prog").__getitem__)) for folder in found}
    assert len(orders) > 1


def test_the_definition_that_a_link_takes_of_an_inline_function_stays_so(cache: BuildCache, make: Make) -> None:
    """Each object has one of its own, by other options: the order of objects says which is taken, and so which program it is."""
    header = "inline int shared(int n) { int s = OWN; for (int i = 0; i < n; i++) s += i % OWN; return s; }\n"
    unit = '#include "shared.h"\nint {name}(int n) {{ return shared(n); }}\n'
    declared = '#include <cstdio>\n#include "shared.h"\nint f1(int); int f2(int); int f3(int);\n'
    main = f'{declared}int main() {{ std::printf("%d\\n", f1(9) + f2(9) + f3(9)); }}\n'
    files = {"main.cpp": main, "shared.h": header, **{f"f{n}.cpp": unit.format(name=f"f{n}") for n in (1, 2, 3)}}
    steps = [f"g++ -O0 -DOWN={n} -c f{n}.cpp" for n in (1, 2, 3)]
    found = varied(make(files, " && ".join([*steps, "g++ -O0 -DOWN=4 -c main.cpp", "g++ f3.o f1.o main.o f2.o -o prog"])), cache)
    assert found.spread.count == COUNT
    assert {printed(folder) for folder in found} == {printed(found.built.folder)}


def test_layouts_are_up_to_date_and_clean_and_the_build_comes_back(cache: BuildCache, make: Make) -> None:
    rules = "made: prog\n\t./prog > made\n" + OBJECTS
    built = make({**SOURCES, "Makefile": rules, "data/log": ""}, "make")
    before = (built.tree / "prog").read_bytes()
    found = whole(built, cache)
    names = {tuple(sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))) for folder in found}
    assert len(names) == 1
    for folder in found:
        assert subprocess.run(["make", "-q"], cwd=folder, check=False).returncode == 0
    assert (built.tree / "prog").read_bytes() != before
    found.spread.upkeep.close()
    assert (built.tree / "prog").read_bytes() == before
    assert list(built.tree.parent.glob("*.layers")) == []


@pytest.mark.parametrize(
    "flags",
    [
        "-ffunction-sections -fdata-sections -Wl,--gc-sections",
        "-flto",
        "-no-pie -Wl,--sort-section=name -Wl,-Map=prog.map",
        "-fuse-ld=gold",
        "-Wl,-T,whole.ld -no-pie -static",
    ],
)
def test_whatever_a_link_is_told_stays_so(cache: BuildCache, make: Make, flags: str) -> None:
    if "gold" in flags and not shutil.which("ld.gold"):
        pytest.skip("needs gold")
    script = subprocess.run(["ld", "--verbose"], capture_output=True, text=True, check=True).stdout.split("=" * 50)[1]
    files = {**SOURCES, "Makefile": OBJECTS, "whole.ld": script}
    found = whole(
        make(files, f"make CFLAGS='-O2 {flags}' LDFLAGS='-O2 {flags}'" if "-T" not in flags else f"make LDFLAGS='{flags}'"), cache
    )
    assert {printed(folder) for folder in found} == {PRINTED}
    moved = "one" if "sort" in flags else "main"  # sections by name: `main`'s is the first, whatever is linked
    assert len(places(found, moved, 4096)) == COUNT
    stacks = [subprocess.run(["readelf", "-lW", folder / "prog"], capture_output=True, text=True, check=True).stdout for folder in found]
    assert all("GNU_STACK" in text and "RWE" not in text for text in stacks)


CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(parts CXX C)
add_library(parts SHARED one.c two.c)
add_library(three STATIC three.c four.c five.c)
add_executable(prog main.cpp more.cpp third.cpp fourth.cpp)
target_link_libraries(prog parts three)
"""
CPLUSPLUS = """\
#include <cstdio>
#include <string>
extern "C" { int one(int), two(int), three(int), four(int), five(int); extern int state; int state = 4; }
struct Named { explicit Named(const char *name) { std::printf("%s ", name); } };
Named first("first");
std::string more();
int main() { std::printf("%s %d\\n", more().c_str(), one(1) + two(2) + three(3) + four(4) + five(5)); }
"""
MORE = """\
#include <cstdio>
#include <string>
struct Named { explicit Named(const char *name) { std::printf("%s ", name); } };
Named second("second");
std::string more() { return std::string(20, 'm'); }
"""
NAMED = """\
#include <cstdio>
struct Named {{ explicit Named(const char *name) {{ std::printf("%s ", name); }} }};
Named {name}("{name}");
"""


@pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake")
def test_a_library_is_found_in_the_own_tree_and_constructors_keep_their_order(cache: BuildCache, make: Make) -> None:
    files = {
        **PARTS,
        "four.c": "int four(int n) { return n + 1; }\n",
        "five.c": "int five(int n) { return n + 2; }\n",
        "main.cpp": CPLUSPLUS,
        "more.cpp": MORE,
        "third.cpp": NAMED.format(name="third"),
        "fourth.cpp": NAMED.format(name="fourth"),
        "CMakeLists.txt": CMAKE,
    }
    found = whole(make(files, "cmake -S . -B out && cmake --build out -j2"), cache)
    assert {printed(folder / "out") for folder in found} == {f"first second third fourth {'m' * 20} 32\n"}
    assert len(places(found, "one", 4096, "out/libparts.so")) == COUNT
    members = ("three", "four", "five")
    assert len({tuple(sorted(members, key=addresses(folder / "out/prog").__getitem__)) for folder in found}) > 1
    for folder in found:
        loaded = subprocess.run(["ldd", folder / "out/prog"], capture_output=True, text=True, check=True).stdout
        assert f"{folder}/out/libparts.so" in loaded


@pytest.mark.skipif(not (shutil.which("meson") and shutil.which("ninja")), reason="needs meson and ninja")
def test_thin_archives_of_meson_are_taken_in_another_order(cache: BuildCache, make: Make) -> None:
    project = "project('p', 'c')\nl = static_library('l', 'one.c', 'two.c', 'three.c')\nexecutable('prog', 'main.c', link_with: l)\n"
    built = make({**SOURCES, "meson.build": project}, "meson setup out && ninja -C out")
    found = whole(built, cache)
    assert {printed(folder / "out") for folder in found} == {PRINTED}
    assert (built.tree / "out/libl.a").read_bytes().startswith(b"!<thin>")
    assert len({tuple(sorted(FUNCTIONS[1:], key=addresses(folder / "out/prog").__getitem__)) for folder in found}) > 1


def test_copies_of_a_program_are_replaced_with_it(cache: BuildCache, make: Make) -> None:
    found = whole(make({**SOURCES, "Makefile": OBJECTS}, "make && mkdir bin && install prog bin/tool"), cache)
    for folder in found:
        assert (folder / "bin/tool").read_bytes() == (folder / "prog").read_bytes()
        assert os.access(folder / "bin/tool", os.X_OK)
    assert len(places(found, "one", 4096, "bin/tool")) == COUNT


def test_a_program_that_is_not_linked_again_is_named_where_others_are(cache: BuildCache, make: Make) -> None:
    built = make(
        {**SOURCES, "Makefile": OBJECTS}, "make && gcc -o other main.o one.o two.o three.o && strip other && cp prog away && strip away"
    )
    found = varied(built, cache)
    assert found.spread.count == COUNT
    (note,) = found.notes
    assert note.slug == "layout-kept"
    assert "other was changed after it was linked" in note.text
    assert "away was not seen to be linked" in note.text
    assert len(places(found, "one", 4096)) == COUNT


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("make && strip prog", "prog was changed after it was linked"),
        ("make && mv prog elsewhere", "prog is not where it was linked"),
        ("make && rm one.o", "prog cannot be linked again: one.o is gone"),
        ("make && sleep 0.02 && gcc -O1 -c one.c", "prog cannot be linked again: one.o was written again"),
        ("make LDLIBS='-Llibs -lpart' && rm -r libs", "prog does not link with its objects in another order"),
        ("gcc -O2 -include defines main.c one.c two.c three.c -o prog && rm defines", "the sources of prog do not compile apart"),
        ("gcc -c main.c one.c two.c three.c && ld -r -o prog main.o one.o two.o three.o", "no link of a program"),
    ],
)
def test_what_cannot_be_linked_again_has_one_layout_and_a_reason(cache: BuildCache, make: Make, command: str, says: str) -> None:
    before = "mkdir libs && echo 'int part;' > libs/part.c && gcc -c libs/part.c -o libs/part.o && ar rc libs/libpart.a libs/part.o"
    built = make({**SOURCES, "Makefile": OBJECTS, "defines": ""}, f"{before} && {command}")
    assert says in reason(built, cache)


def test_builds_of_before_that_know_no_links_have_one_layout(cache: BuildCache, make: Make) -> None:
    assert "no link of a program" in reason(replace(make({**SOURCES, "Makefile": OBJECTS}, "make"), links=()), cache)


def test_what_is_not_compiled_is_in_a_layout_of_its_own_in_each_pair_unless_programs_lie_beside_it(cache: BuildCache, make: Make) -> None:
    scripts = replace(make({"count.py": "print(1)\n"}, "true"), commands=())
    found = varied(scripts, cache)
    assert found.notes == ()
    assert [(folder / "count.py").read_text() for folder in found] == ["print(1)\n"] * COUNT
    shutil.copy("/bin/true", scripts.tree / "helper")
    assert varied(scripts, cache).spread.count == 1


@pytest.mark.parametrize(("share", "layouts_made", "slug"), [(0.5, 1, "one-layout"), (1.5, 2, "fewer-layouts")])
def test_what_layouts_hold_is_bounded(
    cache: BuildCache, make: Make, monkeypatch: pytest.MonkeyPatch, *, share: float, layouts_made: int, slug: str
) -> None:
    built = make({**SOURCES, "Makefile": OBJECTS}, "make")
    size = (built.tree / "prog").stat().st_size
    monkeypatch.setattr(layouts, "MOST_BYTES", share * size)
    found = varied(built, cache)
    assert found.spread.count == layouts_made
    (note,) = found.notes
    assert note.slug == slug
    assert "and layouts may take" in note.text


def test_time_is_bounded(cache: BuildCache, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "LEAST_S", -1.0)
    built = replace(make({**SOURCES, "Makefile": OBJECTS}, "make"), duration_s=-1.0)
    assert "linking again takes longer" in reason(built, cache)


def test_layouts_are_drawn_by_the_seed_alike_for_all_builds(cache: BuildCache, make: Make) -> None:
    files = {**SOURCES, "Makefile": OBJECTS}
    built, other = make(files, "make"), make(files, "make", name="cd" * 16)

    def drawn(found: Varied) -> list[int]:
        places = [addresses(folder / "prog")["one"] for folder in found][1:]
        found.spread.upkeep.close()
        return places

    first = drawn(whole(built, cache))
    assert drawn(whole(built, cache)) == first
    assert drawn(varied(built, cache, seed=2)) != first
    assert drawn(whole(other, cache)) == first


def test_what_base_and_head_share_lies_at_the_same_places_within_lines(cache: BuildCache, make: Make) -> None:
    larger = "int one(int n) { while (n > 9) n = n % 7 ? n - 3 : n / 7; return n * 3; }\n"
    base = whole(make({**SOURCES, "Makefile": OBJECTS}, "make CFLAGS=-O2"), cache)
    head = whole(make({**SOURCES, "one.c": larger, "Makefile": OBJECTS}, "make CFLAGS=-O2", name="cd" * 16), cache)
    found = [[addresses(folder / "prog") for folder in side] for side in (base, head)]
    shared = [{tuple(places[name] % 64 for name in ("one", "two", "three")) for places in side[1:]} for side in found]
    assert shared[0] == shared[1]
    assert len(shared[0]) == COUNT - 1


def test_there_are_as_many_as_asked_for_as_long_as_they_cost_no_more_than_runs(cache: BuildCache, make: Make) -> None:
    found = varied(make({**SOURCES, "Makefile": OBJECTS}, "make"), cache, count=6, asked=2)
    found.spread.grow(4, limit_s=math.inf)
    assert found.spread.count == 4
    assert len({addresses(folder / "prog")["one"] for folder in found}) == 4
    found.spread.grow(6, limit_s=0.0)
    assert found.spread.count == 4
    found.spread.grow(6, limit_s=100.0)  # later, when runs took longer
    assert found.spread.count == 6


def test_a_setup_stands_above_all_layouts_and_is_made_once(cache: BuildCache, make: Make) -> None:
    found = whole(make({**SOURCES, "Makefile": OBJECTS}, "make"), cache)
    setup = replace(IDLE, text="echo made >> data; chmod a-w data", directory=found.built.folder)
    seen = []
    for number in (1, 0, 2, 1):
        with found.spread.upkeep.around(found.built.tree, IDLE, Chores("w", 0, number, setup), ProcessExecutor()):
            seen.append((addresses(found.built.folder / "prog")["one"], (found.built.folder / "data").read_text()))
    assert [text for _, text in seen] == ["made\n"] * 4
    assert seen[0] == seen[3]
    assert len({place for place, _ in seen}) == 3


def compiled(folder: Path, **sources: str) -> list[Path]:
    made = []
    for name, text in sources.items():
        (folder / f"{name}.c").write_text(text)
        subprocess.run(["gcc", "-fcommon", "-c", f"{name}.c"], cwd=folder, check=True)
        made.append(folder / f"{name}.o")
    return made


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("int f(void) { return 1; }", False),
        ("__attribute__((constructor)) static void f(void) {}", True),
        ("__attribute__((destructor)) static void f(void) {}", True),
        ('__attribute__((section("commands"))) int entry = 1;', True),
        ('__attribute__((section(".mine"))) int entry = 1;', False),
    ],
)
def test_who_has_constructors_or_tables_keeps_its_place(tmp_path: Path, text: str, keeps: bool) -> None:
    (made,) = compiled(tmp_path, f=text)
    assert objectfiles.keeps_its_place(made.read_bytes()) == keeps


def test_objects_still_to_be_compiled_and_damaged_ones_keep_their_place(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text("int f;")
    subprocess.run(["gcc", "-flto", "-c", "f.c"], cwd=tmp_path, check=True)
    content = (tmp_path / "f.o").read_bytes()
    assert objectfiles.keeps_its_place(content)
    assert objectfiles.keeps_its_place(content[:100])


def test_rivals_are_those_who_define_the_same(tmp_path: Path) -> None:
    weak = "__attribute__((weak)) int common_name(void) { return %d; }"
    files = compiled(tmp_path, a=weak % 1, b=weak % 2, c="int other;", d="int tentative;", e="int tentative;")
    assert objectfiles.rivals(files, ENVIRONMENT) == {str(files[0]), str(files[1])}
    assert objectfiles.rivals(files[2:3], {"PATH": str(tmp_path)}) is None


@pytest.mark.parametrize("kind", ["rcs", "rcsT"])
def test_archives_are_read_and_shuffled(tmp_path: Path, kind: str) -> None:
    names = ["short", "odd", "with_a_name_of_more_than_sixteen"]
    objects = compiled(tmp_path, **{name: f"int {name};" for name in names})
    path = tmp_path / "lib.a"
    subprocess.run(["ar", kind, path.name, *(each.name for each in objects)], cwd=tmp_path, check=True)
    archive = archives.read_archive(path)
    assert archive is not None
    assert [content.rstrip(b"\n") for content in archive.contents] == [each.read_bytes().rstrip(b"\n") for each in objects]
    assert archives.may_be_shuffled(path, ENVIRONMENT)
    path.write_bytes(archive.shuffled(random.Random(2)))
    listed = subprocess.run(["ar", "t", path], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(Path(each).name for each in listed) == sorted(each.name for each in objects)
    assert [Path(each).name for each in listed] != [each.name for each in objects]


@pytest.mark.parametrize(
    "sources",
    [
        {"a": "__attribute__((constructor)) static void f(void) {}", "b": "__attribute__((constructor)) static void f(void) {}"},
        {"a": "int same;", "b": "int same = 1;"},
        {"a": "int alone;"},
    ],
)
def test_archives_whose_order_decides_something_stay(tmp_path: Path, sources: dict[str, str]) -> None:
    path = tmp_path / "lib.a"
    subprocess.run(["ar", "rcs", path, *compiled(tmp_path, **sources)], check=True)
    assert not archives.may_be_shuffled(path, ENVIRONMENT)


def test_a_tree_that_cannot_be_written_has_one_layout(cache: BuildCache, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make({**SOURCES, "Makefile": OBJECTS}, "make")

    def refuse(pattern: Pattern, seed: str, linker: Linker) -> dict[Path, str]:
        (built.tree / "prog").unlink()
        raise PermissionError("not yours")

    monkeypatch.setattr(layouts, "relink", refuse)
    assert "its programs cannot be written: not yours" in reason(built, cache)
    assert printed(built.folder) == PRINTED


def test_sides_of_one_revision_are_built_and_laid_out_once(cache: BuildCache, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in {**SOURCES, "Makefile": OBJECTS}.items():
        (folder / name).write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "all")
    pins = resolve(find_repository(folder), ["HEAD", "HEAD"], snapshots=cache.root / "snapshots")
    by_side = {Side.BASE: pins.base, Side.HEAD: pins.head}
    shop = Workshop(by_side, BuildConfig("make"), ENVIRONMENT, cache, cache.root, tmp_path, Packs(C(cache.root / "units")), Silent())
    plain = shop.plain()
    assert plain[Side.BASE].tree == plain[Side.HEAD].tree
    spread = LayoutSpread(shop.layouts(plain, COUNT), Upkeep(), 1, COUNT)
    spread.grow(COUNT)
    assert spread.notes == ()
    assert {printed(made) for made in Varied(plain[Side.HEAD], spread)} == {PRINTED}
    assert len({addresses(made / "prog")["main"] for made in Varied(plain[Side.HEAD], spread)}) == COUNT
