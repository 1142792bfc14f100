"""Services of workloads: configured, started, ready, counted to the run, and ended with all that they started."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import socket
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff import configuration, processes, reproduction
from perfdiff.collect.execution.executor import Command, ProcessExecutor
from perfdiff.collect.serving import loopback
from perfdiff.collect.serving.served import Served
from perfdiff.collect.serving.services import Services, Situation
from perfdiff.config import Config, ServiceConfig
from perfdiff.errors import ConfigError, RunFailedError, WorkloadError
from test_processes import programs_in, working_in

PYTHON = shlex.quote(sys.executable)
ECHO = """
    import os, socket, sys, threading, time
    listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    print("listening", flush=True)
    def serve(connection):
        with connection:
            word = connection.recv(100).decode()
            if word.startswith("work"):
                end = time.process_time() + 0.2
                while time.process_time() < end:
                    pass
            if word.startswith("die"):
                os._exit(3)
            connection.sendall(b"done " + word.encode())
    while True:
        threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""
ASK = """
    import socket, sys
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        connection.sendall(sys.argv[2].encode())
        sys.exit(not connection.recv(100))
"""
BASE = '[build]\ncommand = "true"\n\n'
WORKLOAD = '[[workload]]\nname = "w"\ncommand = "ask {app.port} {n}"\nparameters = { n = [1, 2] }\n'
APP = '[[service]]\nname = "app"\ncommand = "serve {port}"\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    for name, text in (("echo.py", ECHO), ("ask.py", ASK)):
        (folder / name).write_text(textwrap.dedent(text))
    return folder


@pytest.fixture
def up(tree: Path) -> Iterator[Callable[..., object]]:
    """Return what has services up for a command in the tree."""
    made: list[Services] = []

    def around(*configs: ServiceConfig, ask: str = "true", services: Services | None = None, **changes: object) -> object:
        command = Command(ask, tree, {"PATH": os.environ["PATH"]}, 30.0, (0,), "head, w")
        if services is None:
            services = Services(configs, {"PATH": os.environ["PATH"]}, tree, tree.parent / "logs")
            made.append(services)
        return services.around(replace(Situation(command, command, {"n": 2}), **changes), ProcessExecutor())

    yield around
    for services in made:
        services.close()


def echo(name: str = "app", **changes: object) -> ServiceConfig:
    return replace(ServiceConfig(name, f"exec {PYTHON} echo.py {{port}}", timeout_s=10.0), **changes)


def asking(word: str, service: str = "app") -> str:
    return f"{PYTHON} ask.py {{{service}.port}} {word}"


def test_a_run_has_its_services_and_nothing_of_them_is_left(up: Callable[..., object], tree: Path) -> None:
    with up(echo(), echo("other"), ask=f"{asking('a')} && {asking('b', 'other')}") as served:
        assert served.execute(ProcessExecutor()).wall_ns > 0
        assert len(programs_in(tree)) == 2
        folders = [Path(service.places["folder"]) for service in served.services]
        assert all(folder.is_dir() for folder in folders)
    assert working_in(tree) == []
    assert not any(folder.exists() for folder in folders)


def test_work_of_a_service_is_the_runs_unless_it_is_outside(up: Callable[..., object], tree: Path) -> None:
    def cpu_ms(service: ServiceConfig) -> float:
        with up(service, ask=asking("work")) as served:
            return served.execute(ProcessExecutor()).cpu_ns / 1e6

    own = cpu_ms(echo())
    outside = cpu_ms(echo(command=f"exec {PYTHON} {tree}/echo.py {{port}}", outside=True))
    assert own - outside == pytest.approx(200, abs=80)


def test_work_of_workers_that_end_is_the_runs(up: Callable[..., object], tree: Path) -> None:
    thread = "threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()"
    fork = "connection, _ = listening.accept(); os.fork() or os._exit(serve(connection) or 0); connection.close(); os.wait()"
    forking = ECHO.replace(thread, fork)
    (tree / "echo.py").write_text(textwrap.dedent(forking))
    with up(echo(), ask=f"{asking('work')} && {asking('work')} && {asking('a')}") as served:
        assert served.execute(ProcessExecutor()).cpu_ns / 1e6 > 380


def test_outside_services_are_kept_between_runs_and_set_up_for_each(up: Callable[..., object], tree: Path) -> None:
    service = echo(
        "db",
        command=f"exec {PYTHON} {tree}/echo.py {{port}}",
        outside=True,
        setup="echo {n} {port} {folder} >> told",
        teardown="echo end >> told",
    )
    services = Services((service,), {"PATH": os.environ["PATH"]}, tree, tree.parent / "logs")
    pids = set()
    for n in (2, 3):
        with up(services=services, values={"n": n}) as served:
            pids.add(served.services[0].process.pid)
    assert len(pids) == 1
    assert len(programs_in(Path(served.services[0].places["folder"]))) == 1
    services.close()
    lines = (tree / "told").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["2", "end", "3", "end"]
    assert lines[0].split()[1:] == lines[2].split()[1:]


def test_what_fails_beside_services_is_not_put_down_to_them(up: Callable[..., object]) -> None:
    with pytest.raises(OSError, match="of the run"), up(echo()):
        raise OSError(errno.ENOSPC, "of the run")


@pytest.mark.parametrize(("changes", "told"), [({}, ["service-state"]), ({"setup": "true"}, []), ({"keep": "run"}, [])])
def test_state_that_runs_leave_to_each_other_is_told(
    up: Callable[..., object], tree: Path, changes: dict[str, str], told: list[str]
) -> None:
    service = echo("db", command=f"exec {PYTHON} {tree}/echo.py {{port}}", outside=True, **changes)
    services = Services((service,), {"PATH": os.environ["PATH"]}, tree, tree.parent / "logs")
    with up(services=services):
        pass
    services.close()
    assert [note.slug for note in services.notes] == told


def test_services_know_those_above_by_places_and_variables(up: Callable[..., object], tree: Path) -> None:
    first = echo("db", ports=("admin",))
    second = echo(
        install="echo {db.port} {db.admin} $PERFDIFF_DB_PORT {n} {project} > told",
        environment={"DATABASE": "127.0.0.1:{db.port}"},
        ready_command="test $DATABASE = 127.0.0.1:{db.port}x -o -n $DATABASE",
    )
    with up(first, second) as served:
        port, admin = (served.services[0].places[name] for name in ("port", "admin"))
        assert (tree / "told").read_text().split() == [port, admin, port, "2", str(tree)]
        assert served.services[1].command.environment["DATABASE"] == f"127.0.0.1:{port}"
        assert served.command.environment["PERFDIFF_DB_ADMIN"] == admin


def test_a_service_is_ready_when_its_line_is_there(up: Callable[..., object]) -> None:
    with up(echo(command=f"sleep 0.1; exec {PYTHON} echo.py {{port}}", ready_line="^list.*g$")) as served:
        assert served.services[0].log.is_seen


def run(around: object) -> None:
    with around as served:
        assert isinstance(served, Served)
        served.execute(ProcessExecutor())


def failure(around: object) -> WorkloadError:
    with pytest.raises(WorkloadError) as caught:
        run(around)
    return caught.value


def test_a_service_that_is_never_ready_is_told_with_what_it_printed(up: Callable[..., object], tree: Path) -> None:
    error = failure(up(echo(command="echo cannot find the moon; exec sleep 600", timeout_s=0.3)))
    assert error.slug == "service-not-ready"
    assert "service app, 'echo cannot find the moon; exec sleep 600', was not ready within 0.3 s (head, w)" in str(error)
    assert "cannot find the moon" in error.detail
    assert working_in(tree) == []


def test_what_services_printed_is_told_once_where_a_later_one_fails(up: Callable[..., object]) -> None:
    error = failure(up(echo("first", command=f"echo warm; exec {PYTHON} echo.py {{port}}"), echo(command="echo no; exit 4")))
    assert [error.detail.count(f"service {name} printed") for name in ("first", "app")] == [1, 1]


def test_a_service_that_goes_to_the_background_midway_is_told_to_stay(up: Callable[..., object]) -> None:
    error = failure(up(echo(command=f"{PYTHON} echo.py {{port}} & until test -e go; do sleep 0.05; done"), ask="touch go; sleep 60"))
    assert error.slug == "service-died"
    assert "ended during the run (head, w), while processes that it started went on; let it stay in the foreground" in str(error)


def test_the_end_of_what_a_service_printed_begins_with_a_line(up: Callable[..., object]) -> None:
    error = failure(up(echo(command="seq -f 'line %06g' 1000; exit 1")))
    assert re.search(r"service-app\.log\):\nline 000\d{3}\nline", error.detail)
    assert error.detail.endswith("line 001000")


def test_a_service_whose_url_answers_otherwise_is_told_with_the_status(up: Callable[..., object], tree: Path) -> None:
    (tree / "unready.py").write_text(
        "import http.server, sys\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_error(503)\n"
        "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n"
    )
    error = failure(up(echo(command=f"exec {PYTHON} unready.py {{port}}", ready="http://127.0.0.1:{port}/health", timeout_s=1.0)))
    assert re.search(r"it is when http://127\.0\.0\.1:\d+/health answers with a status below 500 \(now it is 503\): correct", str(error))


def test_a_service_at_another_port_is_told_to_answer_nowhere(up: Callable[..., object]) -> None:
    error = failure(up(echo(command="exec sleep 600", ready="http://127.0.0.1:{port}/", timeout_s=0.3)))
    assert "(nobody answers there): correct" in str(error)


def test_a_service_that_ends_at_once_is_not_waited_for(up: Callable[..., object]) -> None:
    error = failure(up(echo(command="echo no; exit 4", timeout_s=600.0)))
    assert (error.slug, "exited 4 before it was ready" in str(error)) == ("service-not-ready", True)


def test_a_service_that_dies_midway_is_told_ahead_of_the_failure_of_its_client(up: Callable[..., object]) -> None:
    error = failure(up(echo(), ask=asking("die")))
    assert error.slug == "service-died"
    assert "exited 3 during the run (head, w); then" in str(error)
    assert "listening" in error.detail


def test_a_service_that_crashes_or_hangs_fails_the_run_as_its_command_would(up: Callable[..., object]) -> None:
    """So that one which does so with probes alone leaves the answer to whole runs."""
    failures = [failure(up(echo(), ask=asking("die"))), failure(up(echo(command="exec sleep 600", timeout_s=0.3)))]
    assert [error.slug for error in failures] == ["service-died", "service-not-ready"]
    assert all(isinstance(error, RunFailedError) for error in failures)


def test_a_run_that_waits_for_a_service_which_died_is_ended(up: Callable[..., object]) -> None:
    began = time.monotonic()
    error = failure(up(echo(), ask=f"{asking('die')}; sleep 25"))
    assert time.monotonic() - began < 20
    assert error.slug == "service-died"
    assert str(error).startswith("service app, 'exec ")
    assert "as it may wait for a service that is gone" in str(error)


def test_a_service_that_dies_after_it_answered_is_told_although_the_run_succeeded(up: Callable[..., object]) -> None:
    error = failure(up(echo(), ask=f"{asking('die')} || sleep 0.2"))
    assert error.slug == "service-died"


def test_daemons_that_a_service_leaves_end_with_it(up: Callable[..., object], tree: Path) -> None:
    command = f"(setsid {PYTHON} echo.py {{port}} &); (setsid sh -c 'trap \"\" TERM; sleep 600' &) ; exit 0"
    with up(echo(command=command, timeout_s=3.0), ask=asking("a")) as served:
        served.execute(ProcessExecutor())
        assert len(working_in(tree)) >= 2
    assert working_in(tree) == []


def test_a_service_that_does_not_end_is_killed_and_told(up: Callable[..., object], tree: Path) -> None:
    services = Services(
        (echo(command=f"trap '' TERM; {PYTHON} echo.py {{port}} & while :; do sleep 600; done", timeout_s=0.5),), {}, tree, tree
    )
    with up(services=services):
        pass
    (note,) = services.notes
    assert note.slug == "service-killed"
    assert working_in(tree) == []


def test_what_a_command_leaves_does_not_take_a_services_daemons_along(up: Callable[..., object], tree: Path) -> None:
    """A worker whose parent ended while the command ran is the service's, not the command's."""
    with up(
        echo(command=f"(sleep 0.3; sleep 600) & (setsid sh -c 'sleep 0.2; (sleep 601 &)' &); exec {PYTHON} echo.py {{port}}"),
        ask="sleep 0.5",
    ) as served:
        served.execute(ProcessExecutor())
        assert any("601" in command for command in working_in(tree))
    assert working_in(tree) == []


def test_what_fills_its_log_is_kept_from_filling_memory_and_disk(up: Callable[..., object], tree: Path) -> None:
    noisy = f"(head -c 50000000 /dev/zero | tr '\\0' x; echo; echo the end) ; exec {PYTHON} echo.py {{port}}"
    error = failure(up(echo(command=noisy), ask="false"))
    assert error.slug == "workload-failed"
    assert "the end" in error.detail
    assert len(error.detail) < 5000
    assert (tree.parent / "logs/service-app.log").stat().st_size == 1 << 20


def test_a_setup_that_fails_is_told_with_its_service(up: Callable[..., object]) -> None:
    error = failure(up(echo(setup="echo no table >&2; exit 2")))
    assert (error.slug, "setup of service app, head, w" in str(error), "no table" in error.detail) == ("service-setup-failed", True, True)


def test_a_signal_that_ends_perfdiff_ends_services(up: Callable[..., object], tree: Path) -> None:
    with pytest.raises(KeyboardInterrupt), up(echo()):
        raise KeyboardInterrupt
    assert working_in(tree) == []


def test_a_port_that_was_taken_meanwhile_is_exchanged(up: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = iter([stranger.getsockname()[1]])
        free = loopback.free_ports
        monkeypatch.setattr(loopback, "free_ports", lambda count: [port] if (port := next(taken, None)) else free(count))
        with up(echo(ready_line="^listening$"), ask=asking("a")) as served:
            assert served.execute(ProcessExecutor()).wall_ns > 0
            assert served.services[0].places["port"] != str(stranger.getsockname()[1])


def load(folder: Path, text: str) -> Config:
    (folder / "perfdiff.toml").write_text(BASE + text)
    return configuration.load(folder, environment={})


def test_services_are_read_and_written(tmp_path: Path) -> None:
    database = (
        '[[service]]\nname = "db"\ncommand = "db {port} {folder} {project}"\noutside = true\nsetup = "fill {port} {n}"\nports = ["x"]\n'
    )
    config = load(tmp_path, f'{database}{APP}environment = {{ DB = "{{db.port}}" }}\nstop = "INT"\n{WORKLOAD}')
    db, app = config.services
    assert (db.is_kept, app.is_kept, db.probes, app.stop) == (True, False, ("tcp",), "INT")
    assert config.workloads[0].alone
    again = tmp_path / "again"
    again.mkdir()
    (again / "perfdiff.toml").write_text(reproduction.configuration_text(config))
    assert replace(configuration.load(again, environment={}), source=None) == replace(config, source=None)


def test_parameters_may_have_their_place_in_services_alone(tmp_path: Path) -> None:
    config = load(tmp_path, APP.replace("{port}", "{port} {n}") + WORKLOAD.replace(" {n}", ""))
    assert config.workloads[0].values == {"n": (1, 2)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (APP + WORKLOAD.replace("app.port", "web.port"), "line 7: '{web.port}' in 'ask {web.port} {n}': no service is named"),
        (APP + WORKLOAD.replace("app.port", "app.prot"), "service 'app' has folder, port"),
        (APP.replace("{port}", "{prot}") + WORKLOAD, "line 4: '{prot}' in 'serve {prot}' is neither a place of service 'app'"),
        (APP + 'keep = "comparison"\n' + WORKLOAD, "belongs to the revisions, so it is started for each run"),
        (APP + APP + WORKLOAD, "line 7: 'app' is the name of a service above"),
        (APP.replace("{port}", "{db.port}") + APP.replace('"app"', '"db"') + WORKLOAD, "uses 'db', which is started after it"),
        (APP + 'outside = true\n' + WORKLOAD.replace("{n}", "") + APP.replace("app", "a"), "parameter 'n' has no place"),
        (APP.replace("{port}", "{n}") + 'outside = true\n' + WORKLOAD, "is kept over all runs, so its 'setup' and 'teardown' alone"),
        (APP + APP.replace('"app"', '"db"').replace("{port}", "{app.port}") + 'outside = true\n' + WORKLOAD, 'say keep = "run"'),
        (APP + WORKLOAD + 'services = ["web"]\n', "no service is named 'web'; there are app"),
        (APP + WORKLOAD + 'services = []\n', "service 'app' is used, but not named in its 'services'"),
        (APP + 'ready = "http://example.org/"\n' + WORKLOAD, "it must be \"tcp\" or a URL"),
        (APP + 'stop = "SIGTERM"\n' + WORKLOAD, 'it must be the name of a signal, such as "INT"'),
        (APP.replace('name = "app"\n', "") + WORKLOAD, "this [[service]] has no 'name'"),
        (APP.replace("[[service]]", "[service]") + WORKLOAD, "services are a list: write [[service]] above each one"),
        (APP + "port = 3\n" + WORKLOAD, "unknown key 'port'"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_told_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert says in str(caught.value)


def sleepers(leader: int, mark: str) -> int:
    """Return how many processes of a command have become `sleep`."""
    names = [Path(f"/proc/{process}/comm") for process in processes.family(leader, mark)]
    return sum(name.exists() and name.read_text().strip() == "sleep" for name in names)


def test_ending_names_the_processes_of_one_service_alone(tmp_path: Path) -> None:
    """A signal for one does not reach the other."""
    with (
        processes.running("sleep 600", tmp_path, {**os.environ, processes.MARK: "1"}, stdout=-3, stderr=-3) as one,
        processes.running("sleep 601", tmp_path, {**os.environ, processes.MARK: "2"}, stdout=-3, stderr=-3) as two,
    ):
        assert processes.holds(lambda: sleepers(one.pid, "1") + sleepers(two.pid, "2") == 2, 10.0, 0.01)  # the shell above takes no signal
        assert processes.stop(one.pid, "1", signal.SIGTERM, 10.0)
        assert processes.is_alive(two.pid, "2")
