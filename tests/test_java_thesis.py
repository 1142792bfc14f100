"""The MicroBenchmark of Amadio's thesis (§4), measured, annotated and written as Freud's logs by one command."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import programs
from perfdiff import cli
from perfdiff.models import language
from perfdiff.models.annotation import Annotation, CostClass
from perfdiff.records import freud_log

pytestmark = pytest.mark.integration
SLEEP_NS = 1e6
METHODS = "demo.classes.MicroBenchmark"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the annotations, and the logs that `annotate --logs` has left."""
    folder = tmp_path_factory.mktemp("thesis")
    checkout = folder / "checkout"
    shutil.copytree(programs.FIXTURES / "thesis", checkout)
    programs.git(checkout, "init", "-q")
    programs.git(checkout, "add", "-A")
    programs.git(checkout, "commit", "-q", "-m", "thesis")
    command = ["annotate", "-q", "HEAD", "--repo", str(checkout), "--cache", str(folder / "cache"), "--metric", "wall_ns"]
    with pytest.MonkeyPatch.context() as kept:
        kept.setattr(sys, "excepthook", sys.excepthook)
        with pytest.raises(SystemExit) as ended:
            cli.main([*command, "--logs", str(folder / "logs"), "-o", str(folder / "annotations")])
    assert ended.value.code == 0
    return folder


def annotations(measured: Path) -> dict[str, Annotation]:
    return {each.function: each for each in language.parse_all((measured / "annotations").read_text())}


@pytest.mark.parametrize(
    ("method", "feature", "cost_class", "function"),
    [
        ("testLinear(int)", "t", CostClass.LINEAR, "x"),
        ("testQuad(int)", "t", CostClass.QUADRATIC, "x2"),
        ("testLinearStr(String)", "str.length()", CostClass.LINEAR, "x"),
    ],
)
def test_methods_of_the_thesis_have_their_classes_and_coefficients(
    measured: Path, method: str, feature: str, cost_class: CostClass, function: str
) -> None:
    found = annotations(measured)[f"{METHODS}.{method}"]
    assert (found.cost_class, found.features) == (cost_class, (feature,))
    (scope,) = found.scopes
    (coefficient,) = [term.coefficient for term in scope.terms if term.factors == ((feature, function),)]
    assert SLEEP_NS <= coefficient < 1.6 * SLEEP_NS  # a sleep of 1 ms takes 1.06 to 1.2, and more beside other work


def test_its_logs_are_freuds_and_say_the_same(measured: Path) -> None:
    logs = sorted((measured / "logs").glob("idcm_demo.classes.MicroBenchmark.testQuad*.bin"))
    assert len(logs) == 6  # three runs at two points
    found = [freud_log.read(path).tables[f"{METHODS}.testQuad(int)"] for path in logs]
    assert sorted(int(table.values[:, 0].max()) for table in found) == [4, 4, 4, 8, 8, 8]
    assert all((table.features[0].name, len(table)) == ("t", int(table.values[:, 0].max())) for table in found)
