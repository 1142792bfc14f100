"""Results of phpbench: `phpbench run --dump-file=FILE`. Each iteration is a process."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from perfdiff.records.results.series import BenchmarkSeries, ToolResults, Value, number, parameter, times

TOOL = "phpbench"


def read(text: str) -> ToolResults | None:
    """Return the results in XML of this tool, None where it is of another one; raise ValueError and the like where it is damaged."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it declares entities")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is no whole XML: {error}") from error
    if root.tag != "phpbench":
        return None
    series: list[BenchmarkSeries] = []
    unread: dict[str, str] = {}
    for benchmark in root.iterfind("suite/benchmark"):
        for subject in benchmark.iterfind("subject"):
            name = f"{benchmark.attrib['class'].lstrip(chr(92))}::{subject.attrib['name']}"
            for variant in subject.iterfind("variant"):
                if variant.find("iteration") is None:
                    unread[name] = "it failed"
                else:
                    series.append(_series(name, variant))
    values = {value.attrib.get("name", ""): value.text or "" for value in root.iterfind("suite/env/php/value")}
    remarks = ("xdebug was loaded",) if values.get("xdebug") in ("1", "true") else ()
    return ToolResults(TOOL, tuple(series), {"interpreter": values["version"]} if values.get("version") else {}, remarks, unread)


def _series(name: str, variant: ElementTree.Element) -> BenchmarkSeries:
    taken = [ns for iteration in variant.iterfind("iteration") for ns in _ns(variant, iteration)]
    return BenchmarkSeries(name, dict(_parameters(variant)), tuple((ns,) for ns in taken))


def _ns(variant: ElementTree.Element, iteration: ElementTree.Element) -> tuple[float, ...]:
    """Return what a revolution of an iteration took."""
    net, revolutions = float(iteration.attrib["time-net"]), float(iteration.attrib.get("time-revs") or variant.attrib.get("revs") or 1)
    if number(revolutions) < 1:
        raise ValueError("an iteration has no revolutions")
    return times([net / revolutions], "us")


def _parameters(variant: ElementTree.Element) -> Iterator[tuple[str, Value]]:
    for entry in variant.iterfind("parameter-set/parameter"):
        yield entry.attrib["name"], parameter(entry.attrib["value"] if "value" in entry.attrib else entry.attrib.get("type", "nothing"))
