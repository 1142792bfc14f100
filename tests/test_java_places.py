"""Exact counts of lines of Java code, from real JVMs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import java_programs
import runtimes
from perfdiff.errors import RecordingError
from perfdiff.languages.java import agent
from perfdiff.languages.java.index import index
from perfdiff.languages.java.places import Host, Places, places

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


def reader(folder: Path, files: Mapping[str, str]) -> Places:
    """Compile a tree and return what reads the counts of its lines."""
    jdk, tree = java_programs.jdk(), folder / "tree"
    java_programs.compiled(tree, jdk, files, "-g")
    program = index(tree, jdk, depth=0, cache=None, helpers=runtimes.KEPT)
    return places(jdk, tree, program.functions.values(), Host(agent.build_lines(jdk, "gcc", runtimes.KEPT), ""), runtimes.KEPT)


def run(found: Places, folder: Path, *arguments: str, status: int = 0) -> dict[tuple[str, int], int]:
    """Run the program once; return how often each place ran, by function and line, none of those that did not."""
    out = folder / f"out{len(list(folder.glob('out*')))}"
    out.mkdir()
    command = [java_programs.jdk().java, "-cp", folder / "tree", "app.Main", *arguments]
    ended = subprocess.run(command, env=os.environ | found.environment(out), capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == status, ended.stderr
    assert found.lost(out) == 0
    counts = found.read(out)
    return {(place.function, place.line): int(counts[at]) for at, place in enumerate(found.places) if counts[at]}


def line(text: str) -> int:
    return next(number for number, each in enumerate(MAIN.splitlines(), 1) if text in each)


def test_lines_of_all_threads_are_counted_exactly(tmp_path: Path) -> None:
    found = reader(tmp_path, {"app/Main.java": MAIN})
    counts = run(found, tmp_path, "8")
    inner = "app.Main.inner(int)"
    assert counts[inner, line("sum += i")] == 8 * 1000 * 10
    assert counts[inner, line("i < n; i++) {")] == 8 * 1000 * 11  # begun once, and again behind each step
    assert counts[inner, line("return sum")] == 8 * 1000
    assert counts["app.Main.run()", line("inner(10)")] == 8 * 1000 + 8 + 8 * 1000 * 0 + 0
    assert run(found, tmp_path, "8") == counts
    assert counts == run(found, tmp_path, "8", "halted", status=3) | {}
