"""Queries that calls send to databases and servers: which functions outside are some, and how a query per element is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import HEAD
from perfdiff.analysis.causes.outside import kernel_calls, left, library_calls, more_queries, queries
from perfdiff.analysis.causes.timed import waiting
from perfdiff.analysis.claims import claim
from perfdiff.analysis.compare.waits import Waits, waits
from perfdiff.analysis.counts.library import Departure, departures
from perfdiff.analysis.counts.queries import is_query, noun
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Point, SampleTable
from perfdiff.report.sentences.catalogue import say
from sampled import table
from test_analysis_library import CALLS, calling

POINT = Point(0, "orders", {"n": 20}, "")


@pytest.mark.parametrize(
    "name",
    [
        "sqlite3.Connection.execute",
        "sqlite3.Cursor.executemany",
        "psycopg2.extensions.cursor.execute",
        "MySQLdb._mysql.connection.query",
        "pymysql.cursors.Cursor.execute",
        "sqlalchemy.orm.session.Session.execute",
        "http.client.HTTPConnection.getresponse",
        "java.sql.Statement.executeQuery",
        "java.sql.PreparedStatement.executeUpdate",
        "PreparedStatement.execute",
        "sqlite3_prepare_v2",
        "mysql_real_query",
        "PQexecParams",
        "PDOStatement::execute",
        "PDO::query",
        "mysqli_query",
        "curl_exec",
    ],
)
def test_functions_that_ask_another_process_are_queries(name: str) -> None:
    assert is_query(name)


@pytest.mark.parametrize(
    "name",
    [
        "strlen",
        "write",
        "sqlite3_step",
        "sqlite3.Cursor.fetchone",
        "list.append",
        "dict.get",
        "ThreadPoolExecutor.execute",
        "query",
        "re.compile",
    ],
)
def test_others_are_none(name: str) -> None:
    assert not is_query(name)


def test_requests_of_http_are_called_so() -> None:
    assert [noun(name) for name in ("curl_exec", "urllib.request.urlopen", "PDO::query")] == ["requests", "requests", "queries"]


def asking(
    *, base: float = 1.0, head: float = 20.0, rates: tuple[list[float], list[float]] = ([1, 1], [5, 20]), **more: object
) -> Departure:
    found = Departure(
        name="sqlite3.Connection.execute",
        point=POINT,
        base=base,
        head=head,
        base_run=base,
        head_run=head,
        extra=np.array([0.0, head - base]),
        repeats=True,
        spans_ns=np.array([1180.0, 1180.0]),
        longer_ns=np.zeros(2),
        head_ns=1180.0,
        base_rates=np.array(rates[0], dtype=float),
        head_rates=np.array(rates[1], dtype=float),
    )
    return replace(found, **more)


def test_queries_are_no_other_calls_of_libraries_or_of_the_kernel() -> None:
    asked, other = asking(), asking(name="strlen")
    assert queries((asked, other)) == (asked,)
    assert library_calls((asked, other)) == (other,)
    assert kernel_calls((asked, other)) == ()


def test_a_query_per_element_is_told_by_name_where_queries_grow_with_the_points() -> None:
    experiment, _ = calling(lambda name, side, block: CALLS)
    (info,) = [each for each in experiment.functions if each.name == "scan"]
    cause = left(info, (asking(),))
    assert cause.name == "more-queries"
    assert say(cause.says).startswith(
        "it sends a query per element: queries a call: 1 → 20 at orders n=20 (`sqlite3.Connection.execute`), 1.18 µs each"
    )
    assert (cause.evidence[0].counter, cause.evidence[0].base, cause.evidence[0].head) == ("queries a call", 1, 20)
    same = left(info, (asking(base=1, head=2, rates=([1, 1], [2, 2])),))
    assert say(same.says).startswith("it sends more queries: queries a call: 1 → 2 at")
    several = left(info, (asking(), asking(name="sqlite3.Connection.executemany", base=0.0, head=3.0, rates=([0, 0], [3, 3]))))
    assert "queries a call: 1 → 23 at" in say(several.says)


def test_a_statement_that_is_prepared_and_executed_is_one_query() -> None:
    prepared, executed = asking(name="PDO::prepare"), asking(name="PDOStatement::execute")
    assert queries((prepared, executed)) == (executed,)
    assert queries((prepared,)) == (prepared,), "nobody executes what it prepares"
    cause = more_queries((replace(prepared, head=1.0), replace(executed, head=1.0)), "Store::name", (0.0, 20.0), None)
    assert cause is not None
    assert "queries a call: 0 → 20 at orders n=20 (through `Store::name`, `PDOStatement::execute`)" in say(cause.says)


def test_queries_through_a_function_of_the_projects_own_are_its_callers() -> None:
    once = asking(base=1, head=1)
    cause = more_queries((once,), "Store.query", (1.0, 20.0), claim("given", reason=" (a.py, line 3)"))
    assert cause is not None
    assert say(cause.says) == (
        "it sends more queries: queries a call: 1 → 20 at orders n=20 (through `Store.query`, `sqlite3.Connection.execute`), "
        "1.18 µs each (a.py, line 3)"
    )
    assert [(each.counter, each.base, each.head) for each in cause.evidence] == [
        ("queries a call", 1, 20),
        ("calls of Store.query", 1, 20),
    ]
    assert more_queries((asking(name="strlen"),), "length", (1.0, 20.0), None) is None


def waiting_calls(rng: np.random.Generator, wait_ns: float, work_ns: float = 1e6, lock_ns: float = 0.0) -> SampleTable:
    """Return calls of six runs that work, wait for others, and wait for locks."""
    run = np.repeat(np.arange(6), 20)
    cpu = work_ns * (1 + 0.02 * rng.standard_normal(len(run)))
    wall = cpu + wait_ns * (1 + 0.05 * rng.standard_normal(len(run))) + lock_ns
    made = table({"n": np.ones(len(run))}, wall, run=run)
    return replace(made, metrics={"wall_ns": wall, "cpu_ns": cpu, "lock_wait_ns": np.full(len(run), lock_ns)})


def test_waiting_for_others_is_told_apart_from_work_and_from_locks() -> None:
    rng = np.random.default_rng(1)
    base = waiting_calls(rng, 2e6)
    found = waits(base, waiting_calls(rng, 9e6), (POINT,))
    assert found is not None
    assert (found.base_ns, found.head_ns, found.extra_ns) == pytest.approx((2e6, 9e6, 7e6), rel=0.05)
    assert waits(base, waiting_calls(rng, 2e6, work_ns=8e6), (POINT,)) is None, "it works longer"
    assert waits(base, waiting_calls(rng, 2e6, lock_ns=7e6), (POINT,)) is None, "it waits for a lock, which is told elsewhere"
    assert waits(base, waiting_calls(rng, 2.05e6), (POINT,)) is None, "it waits hardly longer"
    assert waits(base, waiting_calls(rng, 4e6, work_ns=9e6), (POINT,)) is None, "it is the smaller part"
    more_cpu_than_time = waiting_calls(rng, -2e5)
    assert waits(more_cpu_than_time, waiting_calls(rng, -50.0), (POINT,)) is None, "clocks differ, and nobody waits"
    waited = waits(more_cpu_than_time, waiting_calls(rng, 7e6), (POINT,))
    assert waited is not None
    assert waited.base_ns == 0
    assert waits(replace(base, metrics={"wall_ns": base.metrics["wall_ns"]}), base, (POINT,)) is None, "CPU time was not recorded"


def test_waiting_is_put_down_to_the_queries_that_a_call_sends() -> None:
    found = Waits("orders n=20", 2e6, 9e6, 7.1e6)
    assert say(waiting(found, (asking(),)).says) == (
        "a call waits 9 ms for the answers of `sqlite3.Connection.execute` at orders n=20, 2 ms before: 99 % of what it takes longer"
    )
    assert "for other processes, the network or the disk" in say(waiting(found, (asking(name="strlen"),)).says)
    assert say(waiting(replace(found, base_ns=0.0, extra_ns=1e6), ()).says).endswith("not at all before: all of what it takes longer")


def test_a_query_may_explain_what_a_slow_database_takes() -> None:
    """A call of a library may take a microsecond, a query ten milliseconds."""
    experiment, _ = calling(lambda name, side, block: CALLS * (3 if side is HEAD and name == "strlen" else 1))
    assert experiment.library is not None
    named = replace(experiment, library=replace(experiment.library, names=("PQexec", "write")))
    ((found, *_),) = departures(named, CompareConfig()).values()
    assert (found.name, found.is_query) == ("PQexec", True)
    assert found.dearest_ns.tolist() == pytest.approx([2 * CALLS * 1e7] * len(found.extra))
    assert found.head_rates.tolist() == pytest.approx([3.0] * len(found.extra))
