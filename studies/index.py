"""Print the time to find the changed functions of 100 changed files, plan their probes and insert them, without anything cached.

The files are made up: a module each of about 300 lines in C, 230 in C++, with a structure, an enumeration, loops, branches, strings and
calls into itself and its neighbour. Three functions of each file differ between base and head.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff.config import ProbeConfig
from perfdiff.languages.c.index import index
from perfdiff.languages.c.matching import match
from perfdiff.languages.c.probes import insert
from perfdiff.languages.protocol import CompileCommand, Counterpart, Probe, Program
from perfdiff.records.schema import Change, Side
from studies.support import figures

FILES = 100
CHANGED = 3  # functions a file
BAR_S = 10.0

C_FILE = """\
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum {m}_state {{ {M}_IDLE, {M}_OPEN, {M}_CLOSED }};

struct {m}_node {{
    struct {m}_node *next;
    char name[32];
    uint64_t weight;
    double score;
}};

struct {m} {{
    struct {m}_node *first, *last;
    size_t length, capacity;
    enum {m}_state state;
    struct buffer *out;
    int (*compare)(const void *, const void *);
}};
"""
C_FUNCTION = """
/* {note} */
{linkage}long {m}_{name}(struct {m} *self, const char *key, size_t length, int flags)
{{
    struct {m}_node *node = self->first;
    long total = {seed};
    size_t i;

    if (self->state != {M}_OPEN || !key)
        return -EINVAL;
    for (i = 0; i < length && node; i++) {{
        if (flags & {bit} && strcmp(node->name, key) == 0) {{
            total += (long)node->weight {operation} {factor};
            {statement}
        }} else if (node->score > {limit}.0) {{
            node->score *= 0.5;
            total -= LIMITED(total, {limit});
        }}
        switch (flags & 3) {{
        case 0: total ^= (long)i; break;
        case 1: total += (long)strlen(key); break;
        default: total--; break;
        }}
        node = node->next;
    }}
    return total > 0 ? {callee} : buffer_put(self->out, key, length);
}}
"""
C_COMMON = """\
#include <stddef.h>
#define LIMITED(value, limit) ((value) > (limit) ? (limit) : (value))
struct buffer { char *data; size_t size, capacity; };
long buffer_put(struct buffer *buffer, const char *data, size_t size);
"""
CPP_FILE = """\
#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common.h"

namespace {m} {{

struct Node {{
    std::string name;
    std::vector<double> scores;
    std::unique_ptr<Node> next;
}};

class Table : public Base {{
public:
    enum class State {{ idle, open, closed }};
    {declarations}
private:
    std::map<std::string, Node> nodes_;
    std::vector<Node *> order_;
    State state_ = State::idle;
}};
"""
CPP_FUNCTION = """
// {note}
long Table::{name}(const std::string &key, const std::vector<int> &values, int flags)
{{
    long total = {seed};
    if (state_ != State::open)
        throw std::logic_error("{note}");
    for (const auto &value : values) {{
        auto found = nodes_.find(key);
        if (flags & {bit} && found != nodes_.end()) {{
            total += value {operation} {factor};
            {statement}
        }} else if (value > {limit}) {{
            total -= limited<long>(total, {limit});
        }}
    }}
    std::sort(order_.begin(), order_.end(), [](const Node *a, const Node *b) {{ return a->name < b->name; }});
    return total > 0 ? {callee} : total;
}}
"""
CPP_COMMON = """\
template <typename T> T limited(T value, T limit) { return value > limit ? limit : value; }
class Base { public: virtual ~Base() = default; virtual long size() const { return size_; } protected: long size_ = 0; };
"""
NAMES = ("insert", "remove", "find", "merge", "split", "visit", "print", "parse", "write", "close")
NOTES = ("Take the next one.", "Walk the list as far as it goes.", "See whether anything is left.", "Bring it into order.")
STATEMENTS = ("total ^= total >> 3;", "if (total < 0) return total;", "flags &= ~1;", "total = total * 33 + flags;")


def write(folder: Path, side: Side, *, cplusplus: bool) -> list[CompileCommand]:
    """Write the files of a side and return how they would be compiled."""
    compiler, suffix, text = ("/usr/bin/g++", ".cc", _cpp_file) if cplusplus else ("/usr/bin/gcc", ".c", _c_file)
    (folder / "common.h").write_text(CPP_COMMON if cplusplus else C_COMMON)
    commands = []
    for number in range(FILES):
        file = folder / f"m{number}{suffix}"
        file.write_text(text(number, side))
        commands.append(CompileCommand(file, folder, compiler, ("-O2", "-c", file.name, "-o", f"{file.stem}.o"), cplusplus))
    return commands


def _c_file(number: int, side: Side) -> str:
    module = {"m": f"m{number}", "M": f"M{number}"}
    linkage = ["static " if place % 3 else "" for place in range(len(NAMES))]
    prototypes = [f"{linkage[i]}long m{number}_{name}(struct m{number} *, const char *, size_t, int);\n" for i, name in enumerate(NAMES)]
    calls = [f"m{number}_{name}(self, key, length - 1, flags)" for name in NAMES]
    functions = [C_FUNCTION.format(**module, linkage=linkage[i], **_parts(number, i, side, calls)) for i in range(len(NAMES))]
    return "".join((C_FILE.format(**module), *prototypes, *functions))


def _cpp_file(number: int, side: Side) -> str:
    calls = [f"{name}(key, values, flags - 1)" for name in NAMES]
    declarations = "\n    ".join(f"long {name}(const std::string &key, const std::vector<int> &values, int flags);" for name in NAMES)
    functions = (CPP_FUNCTION.format(**_parts(number, place, side, calls)) for place in range(len(NAMES)))
    return CPP_FILE.format(m=f"m{number}", declarations=declarations) + "".join(functions) + "\n}\n"


def _parts(number: int, place: int, side: Side, calls: list[str]) -> dict[str, object]:
    """Return what fills a function; the first functions of a file are others in head."""
    rng = random.Random(f"{number} {place} {side if place < CHANGED else ''}")
    return {
        "name": NAMES[place],
        "note": rng.choice(NOTES),
        "seed": rng.randrange(1000),
        "bit": 1 << rng.randrange(8),
        "operation": rng.choice("+-*"),
        "factor": rng.randrange(2, 100),
        "limit": rng.randrange(10, 10_000),
        "statement": rng.choice(STATEMENTS),
        "callee": calls[(place + 1) % len(calls)],
    }


def probes(pairs: tuple[Counterpart, ...], side: Side) -> list[Probe]:
    """Return probes with all features and conditions in everything that changed or calls what changed."""
    definitions = [pair.base if side is Side.BASE else pair.head for pair in pairs if pair.change is not Change.UNCHANGED]
    return [
        Probe(number, definition, tuple(range(len(definition.features))), tuple(range(len(definition.branches))))
        for number, definition in enumerate(definitions, start=1)
        if definition is not None and definition.obstacle is None
    ]


@dataclass(slots=True)
class Stopwatch:
    """Seconds of each step."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what happens inside."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def measured(room: Path, *, cplusplus: bool) -> tuple[Stopwatch, int]:
    """Return the time of each step, and the number of probes inserted on both sides."""
    watch, programs = Stopwatch(), dict[Side, Program]()
    for side in Side:
        (room / side).mkdir()
        compiled = write(room / side, side, cplusplus=cplusplus)
        with watch.step(f"index {side}"):
            programs[side] = index(room / side, compiled, depth=ProbeConfig().depth)
        if programs[side].problems:
            raise SystemExit(f"the made-up files do not parse: {programs[side].problems[0]}")
    with watch.step("match"):
        pairs = match(programs[Side.BASE], programs[Side.HEAD])
    changed = sum(pair.change is Change.CHANGED for pair in pairs)
    if changed != FILES * CHANGED:
        raise SystemExit(f"{changed} functions are found to be changed, not {FILES * CHANGED}")
    planned = {side: probes(pairs, side) for side in Side}
    with watch.step("insert, both sides"):
        for side in Side:
            insert(room / side, planned[side])
    return watch, sum(map(len, planned.values()))


def main() -> None:
    """Print the table."""
    steps = [*(f"index {side}" for side in Side), "match", "insert, both sides"]
    columns = ("language", "lines a side", "probes", *steps, "seconds in all", "bar")
    with figures.printed(f"Probes for {FILES} changed files", *columns) as table:
        for language, cplusplus in (("C", False), ("C++", True)):
            with tempfile.TemporaryDirectory() as room:
                watch, inserted = measured(Path(room), cplusplus=cplusplus)
                lines = sum(len(path.read_text().splitlines()) for path in Path(room, Side.HEAD).glob("m*.c*"))
            total = sum(watch.seconds.values())
            cells = (f"{watch.seconds[step]:.2f}" for step in steps)
            table.add(language, f"{lines:,}", f"{inserted:,}", *cells, f"{total:.2f}", figures.against(total, BAR_S))
        table.remarks.append(f"Both revisions, nothing cached; bar: {BAR_S:.0f} s.")
