"""Files as other tools write them, cut down to what is read and what stands beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence

NS = (100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.3)  # a repetition each


def google(times: float = 1.0, *, ns: Sequence[float] = NS, unit: str = "ns", waits: float = 1.0, build: str = "release") -> str:
    """Return what Google Benchmark 1.7 writes with repetitions: two sizes, one that is named, one by the clock, and one that failed."""
    scale = {"ns": 1.0, "us": 1e-3, "ms": 1e-6, "s": 1e-9}[unit]

    def entries(name: str, factor: float) -> list[dict[str, object]]:
        own = [
            {
                "name": name,
                "run_name": name,
                "run_type": "iteration",
                "repetitions": len(ns),
                "repetition_index": index,
                "threads": 1,
                "iterations": 1000,
                "real_time": factor * value * scale * waits,
                "cpu_time": factor * value * scale,
                "time_unit": unit,
            }
            for index, value in enumerate(ns)
        ]
        mean = {**own[0], "name": f"{name}_mean", "run_type": "aggregate", "aggregate_name": "mean"}
        del mean["repetition_index"]
        return [*own, mean]

    context = {
        "date": "2026-11-30T14:21:43+00:00",
        "host_name": "lab",
        "executable": "./b",
        "num_cpus": 2,
        "mhz_per_cpu": 2596,
        "cpu_scaling_enabled": False,
        "caches": [{"type": "Data", "level": 1, "size": 49152, "num_sharing": 1}],
        "load_avg": [1.5],
        "library_build_type": build,
    }
    failed = {"name": "BM_broken", "run_name": "BM_broken", "run_type": "iteration", "error_occurred": True, "error_message": "no file"}
    benchmarks = [*entries("BM_sort/100", times), *entries("BM_sort/1000", 10 * times), *entries("BM_named<int>/n:64/min_time:0.5", 1.0)]
    return json.dumps({"context": context, "benchmarks": [*benchmarks, *entries("BM_clock/real_time", 1.0), failed]})


def pytest_benchmark(times: float = 1.0, *, with_data: bool = True, python: str = "3.11.7") -> str:
    """Return what pytest-benchmark 5 writes: a parametrised test and a plain one."""

    def entry(name: str, factor: float, params: dict[str, object] | None, param: str | None) -> dict[str, object]:
        data = [1e-9 * factor * value for value in NS]
        stats = {"min": min(data), "mean": sum(data) / len(data), "stddev": 1e-10, "rounds": len(data), "iterations": 1}
        kept = {"data": data} if with_data else {}
        return {"group": None, "name": name, "fullname": f"t.py::{name}", "params": params, "param": param, "stats": {**stats, **kept}}

    machine = {"node": "lab", "python_implementation": "CPython", "python_implementation_version": python, "cpu": {"brand_raw": "X"}}
    benchmarks = [
        entry("test_work[100]", times, {"n": 100}, "100"),
        entry("test_work[1000]", 10 * times, {"n": 1000}, "1000"),
        entry("test_other", 1.0, None, None),
    ]
    return json.dumps({"machine_info": machine, "commit_info": {}, "benchmarks": benchmarks, "datetime": "…", "version": "5.3.1"})


def asv(times: float = 1.0, *, with_samples: bool = True) -> str:
    """Return what asv 0.6 writes for a commit: a benchmark of two parameters, of which one choice failed, and one of memory."""
    columns = ["result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25", "stats_q_75"]
    samples = [[1e-9 * times * value for value in NS], None, [1e-8 * times * value for value in NS], [1e-8 * value for value in NS]]
    result = [1e-7 * times, None, 1e-6 * times, 1e-6]
    row = [result, [["10", "100"], ["'a'", "'b'"]], "v", 1, 2.0, [0] * 4, [1] * 4, [0] * 4, [1] * 4, [9] * 4, [10] * 4]
    rows = {"b.Suite.time_sum": [*row, *([samples] if with_samples else [])], "b.peakmem_x": [[36868096], [], "v", 1, 2.0]}
    return json.dumps(
        {
            "commit_hash": "a" * 40,
            "env_name": "virtualenv-py3.11",
            "params": {"cpu": "X", "machine": "lab", "num_cpu": "2"},
            "result_columns": [*columns, "stats_number", "stats_repeat", "samples", "profile"],
            "results": rows,
            "version": 2,
        }
    )


def hyperfine(times: float = 1.0, *, program: str = "./sort", exit_code: int = 0) -> str:
    """Return what hyperfine 1.15 writes with `-L n 10,20`."""

    def entry(value: int) -> dict[str, object]:
        taken = [1e-6 * times * value * each for each in NS]
        mean = sum(taken) / len(taken)
        rest = {"mean": mean, "stddev": 1e-6, "median": mean, "user": 1e-4, "system": 0.0, "min": min(taken), "max": max(taken)}
        return {
            "command": f"{program} {value}",
            **rest,
            "times": taken,
            "exit_codes": [exit_code] * len(taken),
            "parameters": {"n": f"{value}"},
        }

    return json.dumps({"results": [entry(10), entry(20)]})


def jmh(times: float = 1.0, *, unit: str = "us/op", mode: str = "avgt", forks: int = 5, jdk: str = "17.0.9") -> str:
    """Return what JMH 1.37 writes: a benchmark with one parameter, of so many forks with two iterations."""
    counted, _, of = unit.partition("/")
    scale = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}

    def raw(ns: float) -> float:
        return scale[of] / ns if counted == "ops" else ns / scale[counted]

    def entry(n: int) -> dict[str, object]:
        data = [[raw(times * n * NS[fork]), raw(times * n * (NS[fork] + 1))] for fork in range(forks)]
        metric = {"score": data[0][0], "scoreError": 1.0, "scoreConfidence": [1, 2], "scoreUnit": unit, "rawData": data}
        shared = {"jmhVersion": "1.37", "benchmark": "org.x.Bench.sum", "mode": mode, "threads": 1, "forks": forks, "jdkVersion": jdk}
        machine = {"vmName": "OpenJDK 64-Bit Server VM", "vmVersion": jdk, "jvmArgs": ["-Xmx1g"]}
        return {**shared, **machine, "params": {"n": f"{n}"}, "primaryMetric": metric, "secondaryMetrics": {}}

    return json.dumps([entry(10), entry(100)])


def phpbench(times: float = 1.0, *, xdebug: str = "") -> str:
    """Return what phpbench 1.2 dumps: ten iterations of a thousand revolutions at two sizes, and a subject that failed."""

    def variant(n: int) -> str:
        iterations = "".join(
            f'<iteration time-net="{times * n * value:.0f}" time-revs="1000" time-avg="{times * n * value / 1000}" comp-z-value="0"/>'
            for value in NS
        )
        parameters = f'<parameter-set name="{n}"><parameter name="n" value="{n}"/></parameter-set>'
        return f'<variant sleep="0" output-time-unit="microseconds" revs="1000">{parameters}{iterations}<stats mean="1"/></variant>'

    php = f'<php><value name="xdebug" type="boolean">{xdebug}</value><value name="version" type="string">8.2.7</value></php>'
    failed = '<subject name="benchBroken"><variant revs="1"><parameter-set name="0"/><errors><error>no</error></errors></variant></subject>'
    return (
        '<?xml version="1.0"?>\n<phpbench xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="1.2.15"><suite tag="" date="2026">'
        f'<env>{php}</env><benchmark class="\\App\\SumBench"><subject name="benchSum"><executor name="remote"/>'
        f"{variant(1000)}{variant(10000)}</subject>{failed}</benchmark></suite></phpbench>"
    )


def go(times: float = 1.0, *, processors: str = "-2", package: str = "example.com/a") -> str:
    """Return what `go test -bench . -benchmem -count=10` prints."""
    lines = ["goos: linux", "goarch: amd64", f"pkg: {package}", "cpu: X"]
    lines += [f"BenchmarkSum/n=100{processors}  \t  797238\t        {times * ns:.4g} ns/op" for ns in NS]
    lines += [f"BenchmarkSum/n=1000{processors} \t   79219\t       {10 * times * ns:.5g} ns/op" for ns in NS]
    lines += [f"BenchmarkAlloc{processors}      \t   21946\t       {ns:.4g} ns/op\t    8192 B/op\t       1 allocs/op" for ns in NS]
    return "\n".join([*lines, "PASS", f"ok  \t{package}\t0.259s", ""])


ALL = {
    "google": google(),
    "pytest-benchmark": pytest_benchmark(),
    "asv": asv(),
    "hyperfine": hyperfine(),
    "jmh": jmh(),
    "phpbench": phpbench(),
    "go": go(),
}
