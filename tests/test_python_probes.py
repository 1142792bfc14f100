"""Probes of Python functions in real interpreters: what small programs record, and that they do what they would do without probes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import python_programs
from perfdiff.errors import BuildError
from perfdiff.languages.python import extension, interpreters
from perfdiff.records.plan import Mode, ProbePlan
from probed_runs import calls, edges
from python_programs import Program

pytestmark = pytest.mark.integration

Make = Callable[..., Program]


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return an interpreter of a virtual environment with the hook, for each version that is at hand."""
    versions = [version for version in python_programs.VERSIONS if python_programs.interpreter(version)]
    folder = tmp_path_factory.mktemp("environments")
    return {version: python_programs.environment(folder / version, python_programs.interpreter(version)) for version in versions}


@pytest.fixture(params=python_programs.VERSIONS)
def make(request: pytest.FixtureRequest, pythons: Mapping[str, Path], tmp_path: Path) -> Make:
    """Make programs, with each version of the interpreter in turn."""
    if request.param not in pythons:
        pytest.skip(f"no Python {request.param}")

    def made(files: str | Mapping[str, str], **functions: Sequence[str]) -> Program:
        named = {"main.py": files} if isinstance(files, str) else files
        probed = {key if "::" in key else f"main.py::{key}": features for key, features in functions.items()}
        return python_programs.program(tmp_path, pythons[request.param], named, probed)

    return made


NESTED = """
import time

def leaf(values, n):
    time.sleep(0.002)
    return len(values) + n

def middle(count):
    for i in range(count):
        leaf([0] * i, i / 2)

def unprobed():
    middle(3)
    middle(2)

unprobed()
print("done")
"""


def test_calls_times_features_and_callers_are_recorded(make: Make) -> None:
    program = make(NESTED, leaf=["length values", "number n"], middle=["number count"])
    outcome = program.run_undisturbed()
    assert (outcome.status, outcome.output, outcome.errors) == (0, "done\n", "")
    record = outcome.only
    assert record.complete
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert edges(record) == {(0, 2): 2.0, (2, 1): 5.0}
    assert sorted(program.values(record, "leaf")) == [(0.0, 0.0), (0.0, 0.0), (1.0, 0.5), (1.0, 0.5), (2.0, 1.0)]
    assert program.values(record, "middle") == [(3.0,), (2.0,)]
    assert record.totals.wall_ns[0] > 10e6  # of sleep
    assert record.totals.self_ns[1] < 5e6 < record.totals.wall_ns[1]


def test_calls_are_counted_where_only_counting_is_asked_for(make: Make) -> None:
    record = make(NESTED, leaf=[], middle=[]).run(mode=ProbePlan(Mode.COUNT)).only
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert not record.samples


VALUES = """
import array, collections, decimal, enum, pathlib, types

class Sized:
    def __len__(self):
        raise SystemError("code of the target's ran")

class Names(list):
    pass

class Lying(list):
    def __len__(self):
        raise SystemError("code of the target's ran")

class Kind(enum.IntEnum):
    TWO = 2

def read(x):
    pass

with open("file", "w") as file:
    file.write("12345")
released = memoryview(b"123")
released.release()
for x in (
    7, True, 2.5, 10 ** 400, Kind.TWO, decimal.Decimal(1), None, "häuser", b"ab", bytearray(3), (1, [2]), {"a": "bc", "d": (1, 2, 3)},
    {1, 2}, collections.deque([1]), range(5), array.array("d", [1, 2]), {}.keys(), collections.OrderedDict(a=1), Names("abc"), Sized(),
    Lying("abc"),
    ["ab", (1, 2, 3)], [Sized()], "file", b"a/b/c", pathlib.Path("file"), memoryview(b"1234"), released, types.MappingProxyType({1: 2}),
):
    str(x) if isinstance(x, pathlib.Path) else None
    read(x)
"""
READ = (  # number, length, nested, type
    (7.0, None, None, "int"),
    (1.0, None, None, "bool"),
    (2.5, None, None, "float"),
    (None, None, None, "int"),
    (2.0, None, None, "__main__.Kind"),
    (None, None, None, "decimal.Decimal"),
    (None, None, None, "NoneType"),
    (None, 6.0, None, "str"),
    (None, 2.0, None, "bytes"),
    (None, 3.0, None, "bytearray"),
    (None, 2.0, None, "tuple"),
    (None, 2.0, 5.0, "dict"),
    (None, 2.0, None, "set"),
    (None, 1.0, None, "collections.deque"),
    (None, 5.0, None, "range"),
    (None, 2.0, None, "array.array"),
    (None, 0.0, None, "dict_keys"),
    (None, 1.0, None, "collections.OrderedDict"),
    (None, 3.0, 3.0, "__main__.Names"),
    (None, None, None, "__main__.Sized"),
    (None, None, 3.0, "__main__.Lying"),
    (None, 2.0, 5.0, "list"),
    (None, 1.0, None, "list"),
    (None, 4.0, None, "str"),
    (None, 5.0, None, "bytes"),
    (None, None, None, "pathlib.PosixPath"),
    (None, 4.0, None, "memoryview"),
    (None, None, None, "memoryview"),
    (None, None, None, "mappingproxy"),
)


def test_values_are_read_without_code_of_the_target(make: Make) -> None:
    program = make(VALUES, read=["number x", "length x", "nested x", "type x", "file x", "depth x"])
    outcome = program.run()
    assert outcome.errors == ""
    found = program.values(outcome.only, "read")
    assert len(found) == len(READ)
    for row, expected in zip(found, READ, strict=True):
        number, length, nested, kind, _, _ = row
        assert (number, length, nested) == expected[:3], row
        assert kind.replace("pathlib._local.", "pathlib.") == expected[3]
    assert found[23][4:] == (5.0, 1.0)
    assert found[24][4:] == (None, 3.0)
    assert found[25][4:] == (5.0, 1.0)


ATTRIBUTES = """
LIMIT = 3

class Plain:
    shared = "abcd"
    def __init__(self, items):
        self.items = items
        self.inner = self if len(items) > 1 else None
        self.label = "ab"

class Slotted:
    __slots__ = ("items", "unset")
    def __init__(self, items):
        self.items = items

class Property:
    @property
    def items(self):
        raise SystemError("code of the target's ran")

class Fallback:
    def __init__(self):
        self.items = [1]
    def __getattr__(self, name):
        raise SystemError("code of the target's ran")

class Own:
    def __init__(self):
        self.items = [1]
    def __getattribute__(self, name):
        raise SystemError("code of the target's ran")

class Tuple(tuple):
    pass

def read(x, *rest, **named):
    def inner():
        return x
    return inner

def outer(values):
    def inner(n):
        return values
    inner(1)

objects = [Plain([1, 2]), Plain([1]), Slotted((1, 2, 3)), Property(), Fallback(), Own(), Tuple((1, 2)), Plain, 5]
objects[6].items = [1, 2, 3, 4]
vars(objects[1])
for x in objects:
    read(x, 1, 2, a=1)
outer([1, 2, 3])
"""


def test_attributes_are_read_where_no_code_runs_for_them(make: Make) -> None:
    features = [
        "length x.items",
        "length x.inner.items",
        "length x.shared",
        "number @LIMIT",
        "length rest",
        "length named",
        "length x.unset",
    ]
    program = make(ATTRIBUTES, read=features, **{"main.py::outer.inner": ["length values", "number n"]})
    outcome = program.run_undisturbed()
    assert outcome.errors == ""
    rows = program.values(outcome.only, "read")
    assert {row[3:] for row in rows} == {(3.0, 2.0, 1.0, None)}
    assert [row[:3] for row in rows] == [
        (2.0, 2.0, 4.0),
        (1.0, None, 4.0),
        (3.0, None, None),
        (None, None, None),
        (1.0, None, None),
        (None, None, None),
        (4.0, None, None),
        (None, None, 4.0),
        (None, None, None),
    ]
    assert program.values(outcome.only, "outer.inner") == [(3.0, 1.0)]


LAYOUT = """
import gc, sys

class Plain:
    def __init__(self):
        self.items = [1, 2]

def read(x):
    return 1

x = Plain()
before = len(gc.get_referents(x)), sys.getsizeof(x)
read(x)
has_dictionary = any(type(each) is dict for each in gc.get_referents(x))
print(has_dictionary, (len(gc.get_referents(x)), sys.getsizeof(x)) == before)
"""


def test_reading_an_attribute_makes_no_dictionary(make: Make) -> None:
    program = make(LAYOUT, read=["length x.items"])
    outcome = program.run()
    assert program.values(outcome.only, "read") == [(2.0,)]
    has_dictionary = "3.10" in str(program.python)  # as all instances then
    assert outcome.output == f"{has_dictionary} True\n"


CONTROL = """
import asyncio, sys

def numbers(n):
    try:
        for i in range(n):
            yield i
    finally:
        pass

def failing(n):
    if n:
        failing(n - 1)
    raise KeyError(n)

async def step(n):
    await asyncio.sleep(0)
    return n

def fact(n):
    return 1 if n < 2 else n * fact(n - 1)

def delegating(n):
    yield from numbers(n)

assert sum(numbers(3)) == 3 and sum(delegating(2)) == 1
thrown = numbers(5)
next(thrown)
try:
    thrown.throw(ValueError)
except ValueError:
    pass
try:
    failing(2)
except KeyError as error:
    trace, depth = error.__traceback__, 0
    while trace:
        trace, depth = trace.tb_next, depth + 1
    print("frames", depth)
assert asyncio.run(step(4)) == 4
assert fact(10) == 3628800
sys.setrecursionlimit(20000)
def deep(n):
    return n and 1 + deep(n - 1)
print(deep(15000))
sys.setrecursionlimit(1000)
try:
    fact(5000)
except RecursionError:
    print("recursion limit")
"""


def test_generators_coroutines_exceptions_and_recursion_are_calls_as_they_run(make: Make) -> None:
    functions = ["numbers", "failing", "step", "fact", "delegating", "deep"]
    program = make(CONTROL, **{name: ["number n"] for name in functions})
    outcome = program.run()
    assert (outcome.status, outcome.errors) == (0, "")
    assert outcome.output == "frames 4\n15000\nrecursion limit\n"
    found = calls(outcome.only)
    # 0, 1, 2, end; 0, 1, end by way of delegating; one, and one that is thrown into
    assert found[1] == 4 + 3 + 2
    assert found[2] == 3
    assert found[3] == 2
    assert found[4] > 900
    assert found[5] == 3
    assert outcome.only.totals.unfinished.sum() == 0
    assert edges(outcome.only)[2, 2] == 2


DEEP = """
import sys, threading

sys.setrecursionlimit(200000)

def deep(n):
    return n and 1 + deep(n - 1)

def run():
    print(deep(100000))
    print(deep(10))

threading.stack_size(64 << 20 if sys.version_info < (3, 11) else 1 << 20)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def test_recursion_is_as_deep_as_without_probes(make: Make) -> None:
    program = make(DEEP, deep=["number n"])
    outcome = program.run()
    assert (outcome.status, outcome.output) == (0, "100000\n10\n")
    told = ("deep", "calls below a deep recursion are not recorded") in outcome.notes
    assert told == ("3.11" in str(program.python))  # where probes let each call take the C stack, as 3.10 does without them
    assert 1000 < calls(outcome.only)[1] < 100012 if told else calls(outcome.only)[1] == 100012


PROCESSES = """
import multiprocessing, os, threading

def work(n):
    return n

def task(n, together=None):
    for _ in range(n):
        work(n)
    if together:
        together.wait()

if __name__ == "__main__":
    together = threading.Barrier(3)
    threads = [threading.Thread(target=task, args=(5, together)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for method in ("fork", "spawn", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=task, args=(7,))
        process.start()
        process.join()
        assert process.exitcode == 0
    child = os.fork()
    if not child:
        task(11)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_threads_and_child_processes_record_their_calls(make: Make) -> None:
    outcome = make(PROCESSES, work=["number n"]).run()
    assert (outcome.status, outcome.errors) == (0, "")
    counts = [int(calls(record)[1]) for record in outcome.recordings if calls(record)]
    assert sorted(counts) == [7, 7, 7, 11, 15]
    ended = [record.complete for record in outcome.recordings if calls(record)]
    assert all(ended)
    assert max(record.threads for record in outcome.recordings) == 3


ENDINGS = {
    "os._exit(3)": 3,
    "sys.exit(4)": 4,
    "raise KeyboardInterrupt": -2,
    "raise ValueError": 1,
    "os._exit('x')": 1,
    "os._exit()": 1,
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_recording_is_complete_however_the_program_ends(make: Make, ending: str) -> None:
    outcome = make(f"import os, sys\ndef work():\n    {ending}\nwork()\n", work=[]).run()
    assert outcome.status == ENDINGS[ending]
    assert outcome.only.complete
    assert calls(outcome.only) == {1: 1.0}


TRACED = """
import sys

events = []

def work(n):
    n += 1
    return n

def profiler(frame, event, argument):
    events.append((event, frame.f_code.co_name))

def tracer(frame, event, argument):
    events.append((event, frame.f_code.co_name))
    return tracer

sys.setprofile(profiler)
work(1)
sys.setprofile(None)
sys.settrace(tracer)
work(1)
sys.settrace(None)
print([event for event, name in events if name == "work"])
"""


def test_a_program_that_traces_itself_sees_what_it_sees_without_probes(make: Make) -> None:
    outcome = make(TRACED, work=["number n"]).run()
    assert outcome.output == "['call', 'return', 'call', 'line', 'line', 'return']\n"
    assert calls(outcome.only) == {1: 2.0}


def test_a_program_finds_nothing_of_the_probes(make: Make) -> None:
    source = "import sys\ndef work(): pass\nwork()\nprint([name for name in sys.modules if 'perfdiff' in name], work.__code__.co_names)\n"
    assert make(source, work=[]).run().output == "[] ()\n"


def test_a_module_imported_from_elsewhere_is_told(make: Make, tmp_path: Path) -> None:
    program = make({"main.py": "import sys\nsys.path.insert(0, sys.argv[1])\nimport lib.one\nlib.one.work()\n", "lib/__init__.py": "",
                    "lib/one.py": "def work(): pass\n"}, **{"lib/one.py::work": []})  # fmt: skip
    (tmp_path / "other/lib").mkdir(parents=True)
    (tmp_path / "other/lib/__init__.py").touch()
    (tmp_path / "other/lib/one.py").write_text("def work(): pass\n")
    outcome = program.run("main.py", str(tmp_path / "other"))
    assert ("elsewhere", f"{tmp_path / 'other/lib/one.py'}\tlib/one.py") in outcome.notes
    assert not calls(outcome.only)
    (tmp_path / "link").symlink_to(program.tree)
    outcome = program.run("main.py", str(tmp_path / "link"))
    assert "elsewhere" not in [word for word, _ in outcome.notes]
    assert calls(outcome.only) == {1: 1.0}


TAKEN = """
import ctypes, sys

def work():
    pass

work()
if sys.version_info >= (3, 12):
    sys.monitoring.set_events(4, 0)
else:
    api = ctypes.pythonapi
    api.PyInterpreterState_Main.restype = ctypes.c_void_p
    default = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p)
    api._PyInterpreterState_SetEvalFrameFunc(ctypes.c_void_p(api.PyInterpreterState_Main()), default)
work()
"""


def test_another_tool_in_place_of_the_probes_is_told(make: Make) -> None:
    outcome = make(TAKEN, work=[]).run()
    assert outcome.status == 0
    assert calls(outcome.only) == {1: 1.0}
    assert ("taken", "another tool has taken the place of the probes") in outcome.notes


TAKE_TOOLS = """\
import sys; m = getattr(sys, "monitoring", None); m and not m.get_tool(3) and [m.use_tool_id(3, "a"), m.use_tool_id(4, "b")]
"""


def test_a_program_without_a_free_monitoring_tool_is_measured_all_the_same(make: Make) -> None:
    program = make(NESTED, leaf=["length values", "number n"], middle=["number count"])
    (site,) = program.python.parents[1].glob("lib/python3*/site-packages")
    taking = site / "_others.pth"
    taking.write_text(TAKE_TOOLS)
    try:
        outcome = program.run()
    finally:
        taking.unlink()
    assert (outcome.status, outcome.output, outcome.errors) == (0, "done\n", "")
    assert calls(outcome.only) == {1: 5.0, 2: 2.0}
    assert program.values(outcome.only, "middle") == [(3.0,), (2.0,)]


def test_a_probe_that_is_off_records_nothing(make: Make) -> None:
    assert not calls(make(NESTED, leaf=[]).run(mode=ProbePlan(Mode.OFF)).only)


def test_an_interpreter_without_headers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = interpreters.described(sys.executable)
    monkeypatch.setattr(interpreters, "described", lambda _: replace(whole, include=(tmp_path / "include",)))
    with pytest.raises(BuildError) as caught:
        extension.build(Path(sys.executable), tmp_path, "gcc", tmp_path)
    assert caught.value.slug == "no-python-headers"


def test_what_is_no_interpreter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        extension.build(tmp_path / "python", tmp_path, "gcc", tmp_path)
    assert caught.value.slug == "no-interpreter"
