"""Outcomes of conditions in Java methods: which jumps decide which conditions, and what each call tells of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import java_programs
import java_sources
from java_programs import Program
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.protocol import FunctionDefinition
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import RecordedSamples

pytestmark = pytest.mark.integration

JDKS = pytest.mark.parametrize("jdk", java_programs.of_each_library(), ids=lambda jdk: f"jdk{jdk.feature}")

MAIN = """
import java.util.*;

class Main {
    static final boolean DEBUG = false;
    final int kept;

    Main(int n) {
        super();
        kept = n > 2 ? n : -n;
    }

    static String judged(int n, String mode, boolean strict) {
        String kind = "none";
        if (mode == null && !strict) {
            kind = "plain";
        } else if (mode != null || n > 5) kind = "given";
        if (DEBUG) System.out.println(n);
        int total = 0;
        while (total < n) total += total % 4 == 0 ? 2 : 1;
        for (int i = 0; i < n && total >= 0; i++) {
            boolean small = i < 3;
            if (small) { total++; }
        }
        do {
            total--;
        } while (total > 0);
        for (int each : new int[n]) total += each;
        for (Object each : List.of(1, 2)) if (each.equals(n)) total++;
        if (
            mode != null
                && mode.length() == 5
                && !(n == 9 || strict)
        ) {
            return mode;
        }
        if (mode instanceof String) return kind;
        Runnable later = () -> { if (n == 4) System.out.print(""); };
        later.run();
        return kind;
    }

    synchronized int ends(double x) {
        try {
            if (x <= 1.5) return 1;
            if (x > 1e6) throw new IllegalStateException();
        } finally {
            if (x == 0) kept(x);
        }
        while (true) {
            if (x-- < 0) break;
        }
        return 2;
    }

    static void kept(double x) { }

    static int named(String name) {
        switch (name) { case "a": return 1; default: }
        return name.isEmpty() ? 2 : 3;
    }

    static long hot(long n) {
        long sum = 0;
        for (long i = 0; i < n; i++) if ((i & 3) == 0) sum += i;
        return sum;
    }

    public static void main(String[] arguments) {
        judged(4, null, false);
        judged(3, "given", false);
        judged(9, "given", true);
        new Main(3).ends(0);
        new Main(1).ends(2);
        try { new Main(2).ends(1e7); } catch (IllegalStateException expected) { }
        named("a");
        named("");
        for (int i = 0; i < 300; i++) hot(1000);
    }
}
"""
JUDGED = [
    "mode == null", "strict", "mode != null", "n > 5", "total < n", "total % 4 == 0", "i < n", "total >= 0", "small", "total > 0",
    "each.equals(n)", "mode != null", "mode.length() == 5", "n == 9", "strict", "mode instanceof String",
]  # fmt: skip
METHODS = {
    "judged": "Main judged (ILjava/lang/String;Z)Ljava/lang/String;",
    "ends": "Main ends (D)I",
    "made": "Main <init> (I)V",
    "named": "Main named (Ljava/lang/String;)I",
    "hot": "Main hot (J)J",
}


def watched(folder: Path, jdk: Jdk, features: dict[str, list[str]]) -> Program:
    """Return the program with all conditions of its methods watched."""
    made = java_programs.program(folder, jdk, {"Main.java": MAIN}, {METHODS[name]: features.get(name, []) for name in METHODS}, "-g")
    planned = {one.linkage[0]: one for one in java_sources.read(made.tree).functions.values()}

    def with_branches(known: FunctionDefinition) -> FunctionDefinition:
        return replace(known, branches=planned[known.linkage[0]].branches)

    probes = tuple(replace(one, definition=with_branches(one.definition)) for one in made.probes)
    return replace(made, probes=tuple(replace(one, branches=tuple(range(len(one.definition.branches)))) for one in probes))


def outcomes(samples: RecordedSamples, features: int = 0) -> list[list[tuple[int, int]]]:
    """Return by call how often each condition was met, and how often it held."""
    ordered = samples.cells[samples.call.argsort(), features:].astype(int)
    return [list(zip(row[0::2].tolist(), row[1::2].tolist(), strict=True)) for row in ordered]


def test_conditions_are_planned_one_by_one_where_a_jump_of_its_own_decides_each(tmp_path: Path) -> None:
    found = java_sources.by_name(java_sources.program(tmp_path, {"Main.java": MAIN}))
    judged = found["Main.judged(int, String, boolean)"]
    assert [plan.text for plan in judged.branches] == JUDGED
    assert [MAIN.encode()[plan.start : plan.end].decode() for plan in judged.branches] == JUDGED
    assert [MAIN.split("\n")[plan.line - 1].count(plan.text.split()[0]) > 0 for plan in judged.branches] == [True] * len(JUDGED)
    ends = [plan.text for plan in found["Main.ends(double)"].branches]
    assert ends == ["x <= 1.5", "x > 1e6", "x-- < 0"], "what is written several times is left alone"
    assert [plan.text for plan in found["Main.named(String)"].branches] == ["name.isEmpty()"]
    assert [plan.text for plan in found["Main.<init>(int)"].branches] == ["n > 2"]


def test_without_lines_in_class_files_no_condition_is_watched(tmp_path: Path) -> None:
    found = java_sources.by_name(java_sources.program(tmp_path, {"Main.java": MAIN}, options=("-g:none",)))
    assert [one.branches for one in found.values()] == [()] * len(found)


def test_of_a_method_that_could_not_be_compiled_any_more_so_many_conditions_are_watched_as_there_is_room_for(tmp_path: Path) -> None:
    body = "\n".join(f"if (n == {each}) return {each};" for each in range(300))
    text = f"class Main {{ static int f(int n) {{ {body}\nreturn n; }} }}"
    found = java_sources.by_name(java_sources.program(tmp_path, {"Main.java": text}))
    assert 0 < len(found["Main.f(int)"].branches) < 10


@JDKS
def test_each_call_tells_how_often_its_conditions_were_met_and_held(tmp_path: Path, jdk: Jdk) -> None:
    outcome = watched(tmp_path, jdk, {"judged": ["number arg0"]}).run_undisturbed()
    assert not outcome.said
    judged = outcomes(outcome.only.samples[1], 1)
    assert judged == [
        [(1, 1), (1, 0), (0, 0), (0, 0), (4, 3), (3, 1), (5, 4), (4, 4), (4, 3), (7, 6), (2, 0), (1, 0), (0, 0), (0, 0), (0, 0), (1, 0)],
        [(1, 0), (0, 0), (1, 1), (0, 0), (3, 2), (2, 1), (4, 3), (3, 3), (3, 3), (6, 5), (2, 0), (1, 1), (1, 1), (1, 0), (1, 0), (0, 0)],
        [(1, 0), (0, 0), (1, 1), (0, 0), (8, 7), (7, 3), (10, 9), (9, 9), (9, 3), (13, 12), (2, 0), (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)],
    ]
    assert outcomes(outcome.only.samples[2]) == [[(1, 1), (0, 0), (0, 0)], [(1, 0), (1, 0), (4, 1)], [(1, 0), (1, 1), (0, 0)]]
    assert outcomes(outcome.only.samples[3]) == [[(1, 1)], [(1, 0)], [(1, 0)]]
    assert outcomes(outcome.only.samples[4]) == [[(0, 0)], [(1, 1)]]


@JDKS
def test_compiled_calls_tell_the_same_as_interpreted_ones(tmp_path: Path, jdk: Jdk) -> None:
    outcome = watched(tmp_path, jdk, {"hot": ["number arg0"]}).run(mode=ProbePlan(Mode.SAMPLE, reservoir=1000))
    found = outcomes(outcome.only.samples[5], 1)
    assert 250 < len(found) <= 300  # a call that other work kept waiting all the time has no record
    assert found == [[(1001, 1000), (1000, 250)]] * len(found)


@JDKS
def test_calls_that_are_not_sampled_tell_nothing_and_run_as_ever(tmp_path: Path, jdk: Jdk) -> None:
    outcome = watched(tmp_path, jdk, {}).run(mode=ProbePlan(Mode.COUNT))
    assert outcome.only.totals.calls.tolist() == [3.0, 3.0, 3.0, 2.0, 300.0]
    assert not outcome.only.samples
