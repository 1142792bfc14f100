"""`perfdiff check --delay` and `--sweep`: how services are made worse to reach, and which functions wait for how many of their answers."""

from __future__ import annotations

import json
import shlex
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import made_services
from perfdiff import configuration
from perfdiff.analysis.annotations.annotating import annotate
from perfdiff.analysis.annotations.sweep import Sweep, at_points, sweep, worse_services
from perfdiff.analysis.series import Standing
from perfdiff.config import CompareConfig, ServiceConfig, ServiceLink, WorkloadConfig
from perfdiff.configuration import Worse, links
from perfdiff.configuration.links import require_services, swept
from perfdiff.errors import ConfigError, UsageError
from perfdiff.records.exchanges import Exchanges
from perfdiff.records.recorded import RecordedExperiment, TablesInMemory
from perfdiff.report import check_plot
from perfdiff.report import sweep as report
from perfdiff.report.sentences.catalogue import noted
from programs import git
from test_schemas import VALIDATORS

DELAYS = (0.0, 1.0, 2.0, 5.0, 10.0)
CONFIG = CompareConfig()
MS = 1e6


# --- how it is written


@pytest.mark.parametrize(
    ("worse", "link"),
    [
        (Worse(delays=("db=2ms",)), ServiceLink("db", delay_s=0.002)),
        (Worse(delays=("db=2ms±0.5ms",)), ServiceLink("db", delay_s=0.002, jitter_s=0.0005)),
        (Worse(delays=("db = 250us+-50us",)), ServiceLink("db", delay_s=0.00025, jitter_s=0.00005)),
        (Worse(bandwidths=("db=1.5MB/s",)), ServiceLink("db", bytes_per_s=1.5e6)),
        (Worse(failures=("db=1%",)), ServiceLink("db", failing=0.01)),
        (Worse(failures=("db=refused:2.5%", "db=after:4kB")), ServiceLink("db", refused=0.025, reset_after=4000)),
        (Worse(("db=1ms",), ("db=10kB/s",), ("db=lost:50%",)), ServiceLink("db", delay_s=0.001, bytes_per_s=1e4, failing=0.5)),
        (Worse(sweep="db=0..10ms"), ServiceLink("db", delays_ms=DELAYS)),
        (Worse(sweep="db=2..4ms"), ServiceLink("db", delays_ms=(2.0, 2.2, 2.4, 3.0, 4.0))),
        (Worse(sweep="db=5,0,1ms"), ServiceLink("db", delays_ms=(0.0, 1.0, 5.0))),
        (Worse(sweep="db=0,500us"), ServiceLink("db", delays_ms=(0.0, 0.5))),
    ],
    ids=repr,
)
def test_options_say_how_a_service_is_worse_to_reach(worse: Worse, link: ServiceLink) -> None:
    assert worse
    assert links(worse) == (link,)


@pytest.mark.parametrize(
    "worse",
    [
        *(Worse(delays=(text,)) for text in ("db", "db=2", "=2ms", "db=-1ms", "db=1ms±2ms", "db=2min", "db=61s", "db=nanms")),
        *(Worse(bandwidths=(text,)) for text in ("db=1MB", "db=0MB/s", "db=fast")),
        *(Worse(failures=(text,)) for text in ("db=101%", "db=1", "db=after:0B", "db=broken:1%")),
        *(Worse(sweep=text) for text in ("db=5ms", "db=10..0ms", "db=0..0ms", "db=1,1ms", "db=0..100s")),
        Worse(delays=("db=1ms",), sweep="db=0..10ms"),
    ],
    ids=repr,
)
def test_what_cannot_be_read_is_refused_with_an_example(worse: Worse) -> None:
    with pytest.raises(UsageError, match=r"write SERVICE=|sets its delays") as caught:
        links(worse)
    assert caught.value.slug == "bad-link"


def test_a_service_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no service is named 'bd'; there are db, web"):
        require_services((ServiceLink("bd"),), (ServiceConfig("db", ""), ServiceConfig("web", "")))


def test_a_sweep_makes_points_of_its_delays_where_the_service_is_used() -> None:
    asked = links(Worse(sweep="db=0,2ms"))
    first, second = swept((WorkloadConfig("a", parameters={"n": (1.0,)}), WorkloadConfig("b", services=())), asked)
    assert first.parameters == {"n": (1.0,), "db_delay_ms": (0.0, 2.0)}
    assert second.parameters == {}
    with pytest.raises(ConfigError, match="rename it"):
        swept((WorkloadConfig("a", parameters={"db_delay_ms": (1.0,)}),), asked)


# --- who waits for what, of runs with a known truth


def swept_runs(seed: int = 1, runs: int = 10, noise: float = 0.03) -> tuple[list[object], Sweep]:
    """Return annotations of a program without delay, and a sweep of it."""
    rng = np.random.default_rng(seed)
    still = made_services.recorded(rng, (0.0,), runs=runs, noise=noise)
    learnt = [
        annotation
        for info in still.experiment.functions
        if (table := still.samples(info.id, still.sides[0])) is not None
        for annotation in annotate(info.name, table, ["wall_ns"], seed=1)
    ]
    found = made_services.recorded(rng, DELAYS, runs=runs, noise=noise)
    return learnt, sweep(learnt, found, "db", "db_delay_ms", CONFIG)


def test_the_answers_that_a_call_waits_for_are_the_slope_over_the_delay() -> None:
    _, found = swept_runs()
    known = {each.function: each for each in found.sensitivities}
    assert known["query"].answers == pytest.approx(1, rel=0.02)
    assert known["node"].answers == pytest.approx(3, rel=0.02)
    assert known["listing"].answers == pytest.approx((4 + 16) / 2, rel=0.02)  # n queries at n = 4 and n = 16
    assert [round(each.answers) for each in known["listing"].points] == [4, 16]
    assert [name for name, each in known.items() if each.is_sensitive] == ["listing", "node", "query"]
    assert [name for name, each in known.items() if each.asks] == ["query"]


@pytest.mark.statistical
def test_intervals_hold_the_truth_and_functions_that_ask_nothing_stay_silent() -> None:
    hits, false = [], 0
    for seed in range(20):
        _, found = swept_runs(seed, runs=6, noise=0.05)
        known = {each.function: each for each in found.sensitivities}
        hits += [known[name].low <= truth <= known[name].high for name, truth in (("query", 1), ("node", 3), ("listing", 10))]
        false += known["render"].is_sensitive
    assert np.mean(hits) >= 0.9
    assert false == 0


def test_annotations_pass_without_delay_and_fail_where_calls_ask_the_service() -> None:
    _, found = swept_runs()
    first, *_, last = found.steps
    assert first.checked.verdict is Standing.HOLDS
    assert all(rate >= 0.9 for rate in report.pass_rates(first.checked).values())
    rates = report.pass_rates(last.checked)
    assert (rates["query"], rates["node"], rates["listing"]) == (0, 0, 0)
    assert rates["render"] >= 0.9


def test_answers_that_came_later_than_asked_count_as_late_as_they_were() -> None:
    """A busy machine: each answer is late by half as much again, as the proxy saw."""
    rng = np.random.default_rng(1)
    found = made_services.recorded(rng, DELAYS, really=1.5)
    known = {each.function: each for each in sweep([], found, "db", "db_delay_ms", CONFIG).sensitivities}
    assert known["node"].answers == pytest.approx(3, rel=0.02)


def test_a_service_that_no_run_asks_is_noted() -> None:
    rng = np.random.default_rng(1)
    found = made_services.recorded(rng, DELAYS)
    silent = replace(found.experiment, runs=tuple(replace(run, services={"db": Exchanges()}) for run in found.experiment.runs))
    notes = sweep([], RecordedExperiment(silent, found.samples), "db", "db_delay_ms", CONFIG).notes
    assert [note.slug for note in map(noted, notes)] == ["service-not-asked"]


def test_a_note_says_how_a_service_was_worse_and_how_often_it_was_asked() -> None:
    found = made_services.recorded(np.random.default_rng(1), (0.0, 1.0))
    (note,) = map(noted, worse_services([ServiceLink("db", delay_s=0.002, jitter_s=0.001, failing=0.01)], found.experiment))
    assert note.slug == "service-worse"
    assert note.text.startswith("service db answers 2 ms late, give or take 1 ms, loses 0.01 of its answers: 28 answers a run")


def test_a_part_of_an_experiment_has_its_own_runs_and_calls_alone() -> None:
    found = made_services.recorded(np.random.default_rng(1), (0.0, 1.0))
    part = at_points(found, frozenset((0,)))
    assert {run.point for run in part.experiment.runs} == {0}
    assert set(part.experiment.totals.run) == {run.id for run in part.experiment.runs}
    table = part.samples(1, part.sides[0])
    assert table is not None
    assert set(table.point) == {0}


# --- how it is told


def test_a_sweep_is_told_as_text_json_and_picture() -> None:
    _, found = swept_runs()
    text = report.text(found, width=160)
    assert text.startswith("100 % of assertions pass at 0 ms of db, 25 % of assertions pass at 10 ms; 3 of 4 functions wait for it.")
    assert "`query` waits for 1.0 answers of db a call (1.0 to 1.0)." in text
    assert "`node` waits for 3.0 answers of db a call, in other functions" in text
    document = json.loads(json.dumps(report.json_document(found), allow_nan=False))
    VALIDATORS["sweep-1"].validate(document)
    assert [step["delay_ms"] for step in document["steps"]] == list(DELAYS)
    assert [step["pass_rate"] for step in document["steps"]] == sorted((step["pass_rate"] for step in document["steps"]), reverse=True)
    assert document["steps"][1]["answers_a_run"] == {"list n=4": 16.0, "list n=16": 40.0}
    assert {each["function"]: each["sensitive"] for each in document["sensitivities"]}["render"] is False
    picture = check_plot.draw(found)
    assert ET.fromstring(picture).tag.endswith("svg")
    assert picture == check_plot.draw(found)


def test_a_sweep_is_an_experiment_that_only_fails_without_delay() -> None:
    learnt, found = swept_runs()
    assert found.verdict is Standing.HOLDS
    cheaper = [replace(each, scopes=tuple(made_services.cheaper(scope) for scope in each.scopes)) for each in learnt]  # type: ignore[attr-defined]
    rng = np.random.default_rng(1)
    again = sweep(cheaper, made_services.recorded(rng, DELAYS), "db", "db_delay_ms", CONFIG)
    assert again.verdict is Standing.VIOLATED


# --- a real program with a real service

SERVICE = """
    import socketserver, sys
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.connection.setsockopt(6, 1, 1)
            for line in self.rfile:
                self.wfile.write(b"row " + line)
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = allow_reuse_address = True
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
PROGRAM = """
    import socket, sys
    class Store:
        def __init__(self, port):
            self.connection = socket.create_connection(("127.0.0.1", port))
            self.connection.setsockopt(6, 1, 1)
            self.answers = self.connection.makefile("rb")
        def query(self, text):
            self.connection.sendall(text.encode() + b"\\n")
            return self.answers.readline().decode()
    def node_for_path(store, path):
        return [store.query(f"{kind} {path}") for kind in ("node", "locks", "owner")]
    def render(rows):
        return "".join(letter.upper() for row in rows * 40 for letter in row)
    def main():
        store = Store(int(sys.argv[1]))
        for number in range(8):
            render(node_for_path(store, f"/file{number}"))
    main()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "db.py").write_text(textwrap.dedent(SERVICE))
    (folder / "app.py").write_text(textwrap.dedent(PROGRAM))
    (folder / "perfdiff.toml").write_text(
        f"""
        [[service]]
        name = "db"
        outside = true
        command = "exec {shlex.quote(sys.executable)} {{project}}/db.py {{port}}"

        [[workload]]
        name = "list"
        command = "python app.py {{db.port}}"
        runs = 5
        """
    )
    made_services.committed(folder)
    return folder


@pytest.mark.integration
def test_a_sweep_over_a_real_program_finds_who_asks_how_often(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("PERFDIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    assert made_services.perfdiff("annotate", "-q", "HEAD", "--metric", "wall_ns", "-o", tmp_path / "learnt") == 0
    sweeping = ("check", "-q", tmp_path / "learnt", "HEAD", "--sweep", "db=0,10,20ms", "--format", "json")
    assert made_services.perfdiff(*sweeping, "--plot", tmp_path / "sweep.svg") in (0, 1)  # 1: at 0 ms, on a machine busier than before
    found = json.loads(capsys.readouterr().out)
    known = {each["function"]: each for each in found["sensitivities"]}
    assert known["app.Store.query"]["answers_a_call"] == pytest.approx(1, abs=0.25)
    assert known["app.node_for_path"]["answers_a_call"] == pytest.approx(3, abs=0.6)
    assert known["app.node_for_path"]["sensitive"]
    assert not known["app.node_for_path"]["asks"]
    assert not known["app.render"]["sensitive"]
    assert [set(step["answers_a_run"].values()) for step in found["steps"]] == [set(), {24.0}, {24.0}]
    assert "<svg" in (tmp_path / "sweep.svg").read_text()
    assert made_services.perfdiff("check", "-q", tmp_path / "learnt", "HEAD", "--delay", "db=20ms", "--format", "json") == 1
    worse = json.loads(capsys.readouterr().out)
    assert {each["function"] for each in worse["assertions"] if each["verdict"] == "violated"} >= {"app.Store.query", "app.node_for_path"}
    assert [note["text"] for note in worse["notes"] if note["slug"] == "service-worse"] == [
        "service db answers 20 ms late: 24 answers a run (median)"
    ]


def test_samples_and_trends_know_no_delay(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    git(tmp_path, "init", "-q")
    (tmp_path / "learnt").write_text("f.wall_ns() {\n  Norm(5, 1);\n}\n")
    assert made_services.perfdiff("check", "-q", "learnt", "--delay", "db=2ms") == 2
    assert "no service is named 'db'; the configuration has no [[service]]" in capsys.readouterr().err


def test_links_are_part_of_what_is_measured(project: Path) -> None:
    overrides = configuration.Overrides(worse=Worse(delays=("db=2ms",)))
    config = configuration.load(project, overrides=overrides, environment={})
    assert config.links == (ServiceLink("db", delay_s=0.002),)
    plain = configuration.load(project, environment={})
    assert plain.links == ()
    assert TablesInMemory([])(1, next(iter(made_services.SIDES))) is None


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_calls_that_follow_no_delay_are_told_so_with_few_runs(runs: int) -> None:
    false = 0
    for seed in range(40):
        found = made_services.recorded(np.random.default_rng(seed), DELAYS, runs=runs, noise=0.5)
        known = {each.function: each for each in sweep([], found, "db", "db_delay_ms", CONFIG).sensitivities}
        false += "render" in known and known["render"].is_sensitive
    assert false <= 1
