"""The recipes for CI services: they can be read, their commands are perfdiff's, and they make of its exit codes what they promise."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from perfdiff import cli
from perfdiff.cli import options

DOCS = Path(__file__).parent.parent / "docs"
GITHUB = DOCS / "recipes" / "github-actions.yml"
GITLAB = DOCS / "recipes" / "gitlab-ci.yml"

SHIM = """#!/bin/sh
echo "$*" >> calls
previous=
for word; do
  [ "$previous" = -o ] && echo report > "$word"
  previous=$word
done
[ "$1" = cache ] || exit "$STATUS"
"""


def read(path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def steps() -> list[dict[str, Any]]:
    (job,) = read(GITHUB)["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def compare_step() -> str:
    return next(str(step["run"]) for step in steps() if step.get("id") == "compare")


def gitlab_script() -> str:
    return "\n".join(read(GITLAB)["perfdiff"]["script"])


SCRIPTS = {
    "github": "\n".join(str(step.get("run", "")) for step in steps()),
    "gitlab": gitlab_script(),
    "guide": "\n".join(re.findall(r"^sh '(.*)'$", (DOCS / "ci.md").read_text(encoding="utf-8"), flags=re.MULTILINE)),
}


def commands(script: str) -> Iterator[list[str]]:
    """Yield the words of each call of perfdiff, variables left as they stand."""
    for part in re.split(r"\|\||&&|;|\n", script):
        if part.split()[:1] == ["perfdiff"]:
            yield shlex.split(part)[1:]


def parsed(words: list[str]) -> Mapping[str, Any]:
    """Return the options as perfdiff's own command line takes them; raises where it would refuse them."""
    given = words[: words.index("--")] if "--" in words else words
    known = given[0] in cli.COMMANDS
    command = get_command(import_module(f"perfdiff.cli.{given[0] if known else cli.COMPARISON}").app)
    context = command.make_context("perfdiff", given[1:] if known else given)
    return context.params


@pytest.mark.parametrize(("path", "keys"), [(GITHUB, {"name", True, "permissions", "concurrency", "jobs"}), (GITLAB, {"perfdiff"})])
def test_recipes_are_yaml_with_the_service_s_keys(path: Path, keys: set[object]) -> None:
    assert set(read(path)) == keys  # `on` is a truth value in YAML 1.1


def test_no_merge_request_gets_what_another_one_kept() -> None:
    kept = read(GITLAB)["perfdiff"]["cache"]
    assert "$CI_MERGE_REQUEST_IID" in kept["key"]
    assert not {"fallback_keys", "unprotect"} & set(kept)
    assert "CACHE_FALLBACK_KEY" not in read(GITLAB)["perfdiff"]["variables"]
    assert read(GITHUB)[True] == "pull_request"  # whose caches GitHub gives to nobody else
    [kept] = [step["with"] for step in steps() if step.get("uses", "").startswith("actions/cache@")]
    assert all("github.event.pull_request.number" in kept[name] for name in ("key", "restore-keys"))


@pytest.mark.parametrize(("place", "count"), [("github", 3), ("gitlab", 3), ("guide", 1)])
def test_commands_are_taken_by_the_real_command_line(place: str, count: int) -> None:
    found = list(commands(SCRIPTS[place]))
    assert len(found) == count
    for words in found:
        parsed(words)


def test_a_command_that_perfdiff_would_refuse_is_noticed() -> None:
    (words,) = commands('perfdiff "$A...$B" --no-such-option')
    with pytest.raises(Exception, match="No such option"):
        parsed(words)


@pytest.mark.parametrize("script", [compare_step(), gitlab_script()], ids=["github", "gitlab"])
def test_reports_have_suffixes_that_choose_a_format(script: str) -> None:
    (names,) = re.findall(r"for report in (.*); do", script)
    assert len({options.report_format(None, Path(name), options.SUFFIXES) for name in names.split()}) == len(names.split())


def test_both_revisions_and_the_whole_history_are_there() -> None:
    checkout = next(step for step in steps() if step.get("uses", "").startswith("actions/checkout@"))
    assert checkout["with"]["fetch-depth"] == 0
    assert "ref" not in checkout["with"], "HEAD^1 is the target branch only in the merge that is checked out by default"
    assert read(GITLAB)["perfdiff"]["variables"]["GIT_DEPTH"] == 0


def test_strangers_code_gets_no_rights() -> None:
    recipe = read(GITHUB)
    assert recipe[True] == "pull_request"
    writing = [step["name"] for step in steps() if "GH_TOKEN" in step.get("env", {}) or "upload-sarif" in step.get("uses", "")]
    assert writing == [step["name"] for step in steps() if step.get("if") == "env.TRUSTED == 'true'"] != []
    assert not any("${{" in step.get("run", "") for step in steps()), "names of branches would be part of the script"


def run(script: str, folder: Path, status: int, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as the services do, with a perfdiff that ends with `status` and writes what it was called with to `calls`."""
    shim = folder / "bin" / "perfdiff"
    shim.parent.mkdir()
    shim.write_text(SHIM)
    shim.chmod(0o755)
    environment = {"PATH": f"{shim.parent}:{os.environ['PATH']}", "STATUS": str(status), **variables}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("status", "code"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 0)])
def test_github_reports_first_and_fails_last(tmp_path: Path, status: int, code: int) -> None:
    output = tmp_path / "output"
    done = run(compare_step(), tmp_path, status, {"BASE": "HEAD^1", "HEAD": "HEAD", "GITHUB_OUTPUT": str(output)})
    assert output.read_text() == f"status={status}\n"
    if status in (2, 3):
        assert done.returncode == status
        return
    assert done.returncode == 0
    reports = sorted(path.name for path in tmp_path.glob("perfdiff.*"))
    assert reports == ["perfdiff.html", "perfdiff.json", "perfdiff.md", "perfdiff.sarif"]
    verdict = next(str(step["run"]) for step in steps() if step.get("name") == "Verdict")
    (tmp_path / "verdict").mkdir()
    assert run(verdict, tmp_path / "verdict", status, {}).returncode == code


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4])
def test_gitlab_passes_the_exit_code_on_and_allows_what_is_open(tmp_path: Path, status: int) -> None:
    done = run(gitlab_script(), tmp_path, status, {"CI_MERGE_REQUEST_DIFF_BASE_SHA": "a", "CI_COMMIT_SHA": "b"})
    assert done.returncode == status
    job = read(GITLAB)["perfdiff"]
    assert job["allow_failure"] == {"exit_codes": [4]}
    if status not in (2, 3):
        kept = {*job["artifacts"]["paths"], *job["artifacts"]["reports"].values()}
        assert kept == {path.name for path in tmp_path.glob("perfdiff.*")}


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
def test_recipes_are_told_of(name: str) -> None:
    assert f"recipes/{name}" in (DOCS / "ci.md").read_text(encoding="utf-8")
