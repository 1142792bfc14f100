"""Exact counts of lines of Java code, from real JVMs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

import java_programs
import runtimes
from perfdiff.errors import RecordingError
from perfdiff.languages.java import agent
from perfdiff.languages.java.index import index
from perfdiff.languages.java.places import JvmLineCounter, places
from perfdiff.languages.line_counts import InterpretedPlaces

pytestmark = pytest.mark.integration

MAIN = """\
package app;

import java.util.function.IntUnaryOperator;

public class Main {
    static final int[] SHARED = new int[1];
    private int kept = 3;

    static int inner(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += i;
        }
        return sum;
    }

    static int tight(int n) {
        int i = 0; while (i < n) i++;
        return i;
    }

    static void fails(int[] of) {
        for (int i = 0; ; i++) {
            of[i] = i;
        }
    }

    static int lambda(int n) {
        IntUnaryOperator twice = x -> {
            return x
                + x;
        };
        return twice.applyAsInt(n);
    }

    class Inner {
        int get() {
            return kept;
        }
    }

    void run() {
        for (int i = 0; i < 1000; i++) inner(10);
    }

    public static void main(String[] arguments) throws Exception {
        int n = Integer.parseInt(arguments[0]);
        Thread[] threads = new Thread[n];
        for (int i = 0; i < n; i++) {
            threads[i] = new Thread(() -> new Main().run());
            threads[i].start();
        }
        for (Thread each : threads) each.join();
        tight(5);
        try {
            fails(new int[2]);
        } catch (ArrayIndexOutOfBoundsException error) {
            lambda(new Main().new Inner().get());
        }
        if (arguments.length > 1) Runtime.getRuntime().halt(3);
        System.exit(0);
    }
}
"""


def reader(folder: Path, files: Mapping[str, str]) -> InterpretedPlaces:
    """Compile a tree and return what reads the counts of its lines."""
    jdk, tree = java_programs.jdk(), folder / "tree"
    java_programs.compiled(tree, jdk, files, "-g")
    program = index(tree, jdk, depth=0, cache=None, helpers=runtimes.KEPT)
    return places(jdk, tree, program.functions.values(), JvmLineCounter(agent.build_lines(jdk, "gcc", runtimes.KEPT), ""), runtimes.KEPT)


def run(found: InterpretedPlaces, folder: Path, *arguments: str, status: int = 0) -> dict[tuple[str, int], int]:
    """Run the program once; return how often each place ran, by function and line, none of those that did not."""
    out = folder / f"out{len(list(folder.glob('out*')))}"
    out.mkdir()
    command = [java_programs.jdk().java, "-cp", folder / "tree", "app.Main", *arguments]
    ended = subprocess.run(command, env=os.environ | found.environment(out), capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == status, ended.stderr
    assert found.lost(out) == 0
    counts = found.read(out)
    return {(place.function, place.line): int(counts[at]) for at, place in enumerate(found.places) if counts[at]}


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> tuple[InterpretedPlaces, Path]:
    """The program above, and where it lies."""
    folder = tmp_path_factory.mktemp("main")
    return reader(folder, {"app/Main.java": MAIN}), folder


@pytest.fixture(scope="module")
def one(main: tuple[InterpretedPlaces, Path]) -> dict[tuple[str, int], int]:
    """What it counts with one thread."""
    return run(*main, "1")


def line(text: str) -> int:
    return next(number for number, each in enumerate(MAIN.splitlines(), 1) if text in each)


def test_lines_of_all_threads_are_counted_exactly(main: tuple[InterpretedPlaces, Path]) -> None:
    counts = run(*main, "8")
    inner = "app.Main.inner(int)"
    assert counts[inner, line("sum += i")] == 8 * 1000 * 10
    assert counts[inner, line("i < n; i++) {")] == 8 * 1000 * 11  # begun once, and again behind each step
    assert counts[inner, line("return sum")] == 8 * 1000
    assert counts["app.Main.run()", line("inner(10)")] == 8 * (1000 + 1)
    halted = run(*main, "8", "halted", status=3)  # no code of anyone's runs at its end
    assert counts == halted | {("app.Main.main(String[])", line("System.exit")): 1}


def test_lines_belong_to_functions_as_users_write_them(main: tuple[InterpretedPlaces, Path], one: dict[tuple[str, int], int]) -> None:
    assert one["app.Main.lambda(int).lambda1", line("return x")] == 1
    assert one["app.Main.lambda(int)", line("IntUnaryOperator twice")] == 1
    assert one["app.Main.Inner.get()", line("return kept")] == 1
    assert one["app.Main.main(String[]).lambda1", line("threads[i] = new")] == 1
    assert one["app.Main.<init>()", line("private int kept")] == 2
    assert one["app.Main.<clinit>()", line("SHARED")] == 1
    assert [place.text for place in main[0].places if place.line == line("sum += i")] == ["sum += i;"]
    assert main[0].sources["app/Main.java"] == tuple(MAIN.split("\n"))


def test_lines_are_counted_to_where_an_exception_leaves_them_and_loops_on_one_line_by_their_steps(one: dict[tuple[str, int], int]) -> None:
    assert one["app.Main.fails(int[])", line("of[i] = i")] == 3
    assert one["app.Main.tight(int)", line("while (i < n) i++")] == 1 + 5  # once, and again at each step


ENDLESS = """\
package app;
public class Main {
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < 5; i++) step();
        System.out.println("ready");
        System.in.read();
    }
    static void step() {}
}
"""


def test_a_killed_virtual_machine_keeps_what_it_counted_and_one_that_still_runs_is_lost(tmp_path: Path) -> None:
    found, out = reader(tmp_path, {"app/Main.java": ENDLESS}), tmp_path / "out"
    out.mkdir()
    command = [java_programs.jdk().java, "-cp", tmp_path / "tree", "app.Main"]
    with subprocess.Popen(command, env=os.environ | found.environment(out), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        assert found.lost(out) == 1
        running.send_signal(signal.SIGKILL)
    assert found.lost(out) == 0
    counts = dict(zip([place.line for place in found.places], found.read(out).tolist(), strict=True))
    assert (counts[8], counts[5], counts[7]) == (5, 1, 0)


def test_what_is_no_count_of_lines_is_told(tmp_path: Path) -> None:
    found, out = reader(tmp_path, {"app/Main.java": ENDLESS}), tmp_path / "out"
    out.mkdir()
    (out / "1-0.lines").write_bytes(b"")  # of a process that had no room
    assert (found.lost(out), found.read(out).sum()) == (1, 0)
    (out / "2-0.lines").write_bytes(b"PDJLINE1" + bytes(100))
    with pytest.raises(RecordingError, match="damaged"):
        found.read(out)
