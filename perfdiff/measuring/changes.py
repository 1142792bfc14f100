"""What changed between the plain builds of both sides, function by function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from perfdiff.build.built import Built
from perfdiff.collect.built import toolchain
from perfdiff.collect.choosing.subjects import Subjects, cleared
from perfdiff.languages.protocol import CodeComparison, Program
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Note, Phase, Side


def site_of(bench: Bench, plain: Mapping[Side, Built]) -> Site:
    """Find what changed, and make the plain builds ready to run."""
    programs = _programs(bench, plain)
    subjects, code = _subjects(bench, programs, plain)
    return Site(
        subjects=subjects,
        plain=plain,
        code=code,
        toolchain=_toolchain(bench, programs, plain),
        skipped=tuple(dict.fromkeys(problem for program in programs.values() for problem in program.problems)),
        notes=tuple(dict.fromkeys((*(note for built in plain.values() for note in built.notes), *_told(bench, plain)))),
        targets=bench.workshop.targets(Phase.PLAIN, plain, {}, {}),
        slowdown=max(bench.packs.slowdown(built) for built in plain.values()),
    )


def without_functions(bench: Bench, plain: Mapping[Side, Built]) -> Site:
    """Make the plain builds ready to run, before it is known what changed: whole runs need no more."""
    tools = toolchain.look({side: Program({}, {}, ()) for side in bench.sides}, plain, (), bench.request.environment)
    return Site(Subjects.alone([]), plain, tools, (), (), bench.workshop.targets(Phase.PLAIN, plain, {}, {}))


def _programs(bench: Bench, plain: Mapping[Side, Built]) -> dict[Side, Program]:
    """Return the functions and declarations of all sides."""
    bench.progress.stage("finding functions", len(bench.sides))
    programs = {}
    for side in bench.sides:
        programs[side] = bench.packs.index(plain[side], depth=bench.request.config.probes.depth, others=list(plain.values()))
        bench.progress.advance(side)
    return programs


def _subjects(bench: Bench, programs: Mapping[Side, Program], plain: Mapping[Side, Built]) -> tuple[Subjects, CodeComparison | None]:
    """Return the numbered functions, and what the code of both sides has in common."""
    if len(bench.sides) == 1:
        return Subjects.alone(programs[Side.BASE].functions.values()), None
    pairs = bench.packs.match(programs[Side.BASE], programs[Side.HEAD])
    code = bench.packs.same_code(plain[Side.BASE], plain[Side.HEAD], pairs)
    compared = pairs if bench.request.followed else bench.packs.compared(pairs, code)
    return Subjects.number(cleared(compared, code), bench.request.followed, bench.request.config.budgeted), code


def _toolchain(bench: Bench, programs: Mapping[Side, Program], plain: Mapping[Side, Built]) -> toolchain.Toolchain:
    """Return what the sides are made of, and what head runs on, or base where it is measured alone."""
    tools = toolchain.look(programs, plain, bench.request.config.workloads, bench.request.environment)
    return replace(tools, libraries=(*tools.libraries, *bench.packs.runs_on(plain[bench.sides[-1]])))


def _told(bench: Bench, plain: Mapping[Side, Built]) -> tuple[Note, ...]:
    """Return what else there is to tell of how the builds differ."""
    return bench.packs.told(plain[Side.BASE], plain[Side.HEAD]) if len(bench.sides) > 1 else ()
