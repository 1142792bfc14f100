"""The action for GitHub and the component for GitLab: valid, safe, and with what they make of perfdiff's answers."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from perfdiff import cli
from perfdiff.cli import cache, options

ROOT = Path(__file__).parent.parent
ACTION, COMPONENT, GUIDE = ROOT / "action.yml", ROOT / "templates" / "perfdiff.yml", ROOT / "docs" / "ci.md"
PLACE = re.compile(r"\$\[\[ inputs\.(\w+) \]\]")
INPUTS = {"version": "perfdiff==0.1.0"}  # that have no default
HOSTILE = "$(touch there)`touch there`; touch there #"

PERFDIFF = """#!/bin/sh
printf '%s\\037' "$@" >> calls
echo >> calls
previous=
for word; do
  [ "$previous" = -o ] && echo "the report" > "$word"
  previous=$word
done
[ "$1" = cache ] || exit "$STATUS"
"""

# A gh that keeps comments in comments.json: [number, login, body]; pages have two of them.
GH = """#!{python}
import json, re, subprocess, sys
from pathlib import Path

def options(name):
    return [words[place + 1] for place, word in enumerate(words) if word == name]

words, file = sys.argv[1:], Path("comments.json")
comments = json.loads(file.read_text())
assert words[0] == "api", words
given = dict(option.split("=", 1) for name in ("-f", "-F", "--field") for option in options(name))
if words[1] == "graphql":
    assert "--paginate" in words and (given["owner"], given["name"], given["number"]) == ("me", "project", "7"), words
    for start in range(0, len(comments), 2):
        nodes = [
            {"databaseId": number, "body": body, "author": login and {"login": login.removesuffix("[bot]")}}
            for number, login, body in comments[start : start + 2]
        ]
        page = {"data": {"viewer": {"login": "github-actions[bot]"}, "repository": {"pullRequest": {"comments": {"nodes": nodes}}}}}
        subprocess.run(["jq", "-r", *options("--jq")], input=json.dumps(page), text=True, check=True)
    sys.exit()
[method] = options("--method")
[place] = [word for word in words if word.startswith("repos/")]
text = Path(given["body"].removeprefix("@")).read_text() if "body" in given else None
if method == "POST":
    assert place == "repos/me/project/issues/7/comments", place
    comments.append([max([0, *(comment[0] for comment in comments)]) + 1, "github-actions[bot]", text])
else:
    number = int(re.fullmatch("repos/me/project/issues/comments/([0-9]+)", place)[1])
    [comment] = [comment for comment in comments if comment[0] == number]
    if method == "PATCH":
        comment[2] = text
    else:
        assert method == "DELETE", method
        comments.remove(comment)
file.write_text(json.dumps(comments))
"""

# A curl with GitLab's answers, for comments as above; a page has as many as are asked for.
CURL = """#!{python}
import json, re, sys
from pathlib import Path

words, file = sys.argv[1:], Path("comments.json")
comments = json.loads(file.read_text())
assert "secret" not in " ".join(words)
assert words[words.index("--config") + 1] == "-" and sys.stdin.read() == 'header = "PRIVATE-TOKEN: secret"\\n'
assert "--fail" in words
method = words[words.index("--request") + 1] if "--request" in words else "GET"
[place] = [word for word in words if word.startswith("https://lab/api/v4/")]
path, _, query = place.removeprefix("https://lab/api/v4").partition("?")
notes = "/projects/3/merge_requests/7/notes"
if path == "/user":
    print(json.dumps({"id": 11}))
elif method == "GET":
    assert path == notes, path
    asked = dict(part.split("=") for part in query.split("&"))
    size = int(asked["per_page"])
    page = comments[size * (int(asked["page"]) - 1) :][:size]
    print(json.dumps([{"id": number, "author": {"id": 11 if login else 12}, "body": body} for number, login, body in page]))
else:
    text = Path(words[words.index("--data-urlencode") + 1].removeprefix("body@")).read_text() if method != "DELETE" else None
    if method == "POST":
        assert path == notes, path
        comments.append([max([0, *(comment[0] for comment in comments)]) + 1, "me", text])
    else:
        number = int(path.removeprefix(f"{notes}/"))
        [comment] = [comment for comment in comments if comment[0] == number]
        if method == "PUT":
            comment[2] = text
        else:
            assert method == "DELETE", method
            comments.remove(comment)
    file.write_text(json.dumps(comments))
"""


def action() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    return read


def steps() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = action()["runs"]["steps"]
    return listed


def step(name: str) -> dict[str, Any]:
    [chosen] = [step for step in steps() if step["name"] == name]
    return chosen


def component(**inputs: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header of the component, and its job with inputs put in their places, as GitLab does."""
    header, body = yaml.safe_load_all(COMPONENT.read_text(encoding="utf-8"))
    values = {name: entry.get("default") for name, entry in header["spec"]["inputs"].items()} | INPUTS | inputs

    def put(place: re.Match[str]) -> str:
        return values[place[1]] if isinstance(values[place[1]], str) else json.dumps(values[place[1]])

    def filled(node: Any) -> Any:
        if isinstance(node, dict):
            return {filled(key): filled(value) for key, value in node.items()}
        if isinstance(node, list):
            return [filled(value) for value in node]
        if isinstance(node, str) and (whole := PLACE.fullmatch(node)):
            return values[whole[1]]
        return PLACE.sub(put, node) if isinstance(node, str) else node

    return header, filled(body)


def job(**inputs: object) -> dict[str, Any]:
    [only] = component(**inputs)[1].values()
    read: dict[str, Any] = only
    return read


def fences(*languages: str) -> list[str]:
    text = GUIDE.read_text(encoding="utf-8")
    return [block for language in languages for block in re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def example(word: str) -> dict[Any, Any]:
    """Return the example of the guide that has a word."""
    [text] = [block for block in fences("yaml") if word in block]
    read: dict[Any, Any] = yaml.safe_load(text)
    return read


def errors(folder: Path, schema: str, document: Mapping[Any, Any]) -> str:
    """Return what the schema that is published for a kind of file finds wrong with a document, "" where nothing is."""
    pytest.importorskip("check_jsonschema")
    file = folder / "document.yml"
    file.write_text(yaml.safe_dump({"on" if key is True else key: value for key, value in document.items()}))  # a truth value in YAML 1.1
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def test_files_are_what_the_services_take(tmp_path: Path) -> None:
    header, body = component()
    assert errors(tmp_path, "github-actions", action()) == ""
    assert errors(tmp_path, "gitlab-ci", header) == ""
    assert errors(tmp_path, "gitlab-ci", body) == ""
    assert errors(tmp_path, "gitlab-ci", component(tags=["quiet"], cache=[], comment=False)[1]) == ""
    assert errors(tmp_path, "github-workflows", example("runs-on")) == ""
    assert errors(tmp_path, "gitlab-ci", example("component:")) == ""


def test_a_key_that_a_service_does_not_know_is_found(tmp_path: Path) -> None:
    broken = action()
    broken["inputs"]["base"]["defualt"] = broken["inputs"]["base"].pop("default")
    assert "defualt" in errors(tmp_path, "github-actions", broken)
    header, body = component()
    body["perfdiff"]["scrpt"] = body["perfdiff"].pop("script")
    assert "scrpt" in errors(tmp_path, "gitlab-ci", body)
    header["spec"]["inputs"]["base"]["type"] = "text"
    assert "text" in errors(tmp_path, "gitlab-ci", header)


def test_inputs_that_are_used_are_declared_and_none_is_idle() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text(encoding="utf-8")))
    assert used == action()["inputs"].keys()
    header, _ = component()
    assert set(re.findall(r"inputs\.([\w-]+)", COMPONENT.read_text(encoding="utf-8"))) == header["spec"]["inputs"].keys()
    assert {name for name, entry in header["spec"]["inputs"].items() if "default" not in entry} == INPUTS.keys()
    [used_action] = [step for step in example("runs-on")["jobs"]["perfdiff"]["steps"] if "perfdiff" in step["uses"]]
    assert used_action.get("with", {}).keys() <= action()["inputs"].keys()
    [included] = example("component:")["include"]
    assert INPUTS.keys() <= included["inputs"].keys() <= header["spec"]["inputs"].keys()
    known = {*action()["inputs"], *header["spec"]["inputs"]}
    table = re.findall(
        r"^\| `([\w-]+)` \|", GUIDE.read_text(encoding="utf-8").partition("## Inputs")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert set(table) == known


def test_no_text_of_others_becomes_part_of_a_script() -> None:
    assert not [step["name"] for step in steps() if "${{" in step.get("run", "")]
    assert all(step["shell"] == "bash" for step in steps() if "run" in step)
    body = COMPONENT.read_text(encoding="utf-8").partition("before_script:")[2].partition("allow_failure:")[0]
    assert "$[[" not in body


def test_strangers_programs_get_no_rights() -> None:
    assert step("Refuse to run strangers' programs with secrets at hand") == steps()[0]
    assert steps()[0]["if"] == "github.event_name == 'pull_request_target'"
    assert run(steps()[0]["run"], Path.cwd(), {}).returncode == 2
    writing = [step["name"] for step in steps() if "GH_TOKEN" in step.get("env", {}) or "upload-sarif" in step.get("uses", "")]
    own = "github.event.pull_request.head.repo.full_name == github.repository"
    assert writing == [step["name"] for step in steps() if own in step.get("if", "")] != []
    workflow = example("runs-on")
    assert workflow[True] == "pull_request"
    [checkout] = [step for step in workflow["jobs"]["perfdiff"]["steps"] if step["uses"].startswith("actions/checkout@")]
    assert checkout["with"] == {"fetch-depth": 0}, "HEAD^1 is the target branch only in the merge that is checked out by default"
    assert job()["variables"]["GIT_DEPTH"] == 0


def test_no_merge_request_gets_what_another_one_kept() -> None:
    kept = job()["cache"]
    assert "$CI_MERGE_REQUEST_IID" in kept["key"]
    assert not {"fallback_keys", "unprotect"} & set(kept)
    assert "CACHE_FALLBACK_KEY" not in job()["variables"]
    assert kept["paths"] == [".perfdiff-cache/"]
    assert job()["variables"]["PERFDIFF_CACHE"] == "$CI_PROJECT_DIR/.perfdiff-cache"
    kept = step("Keep builds and recordings")["with"]
    assert all("github.event.pull_request.number" in kept[name] for name in ("key", "restore-keys"))
    assert step("Keep builds and recordings")["if"] == "inputs.cache == 'true'"


def run(script: str, folder: Path, variables: Mapping[str, str], **programs: str) -> subprocess.CompletedProcess[str]:
    """Run a script as the services do, in `folder`, with `programs` of our own first on PATH."""
    own = folder / "bin"
    for name, text in programs.items():
        own.mkdir(exist_ok=True)
        (own / name).write_text(text.replace("{python}", sys.executable))
        (own / name).chmod(0o755)
    (folder / "temporary").mkdir(exist_ok=True)
    environment = {"PATH": f"{own}:{os.environ['PATH']}", "RUNNER_TEMP": str(folder / "temporary"), **variables}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def compared_on_github(folder: Path, status: int, **variables: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """Run the step that compares; return what it did, and its outputs."""
    given = {"BASE": "HEAD^1", "HEAD": "HEAD", "ARGS": "", "GITHUB_OUTPUT": str(folder / "output"), "STATUS": str(status)} | variables
    done = run(step("Compare")["run"], folder, given, perfdiff=PERFDIFF)
    return done, dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())


def compared_on_gitlab(folder: Path, status: int, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {name: "" if value is None else str(value) for name, value in job()["variables"].items()}
    given |= {"BASE": "a", "HEAD": "b", "STATUS": str(status)} | variables
    return run("\n".join(job()["script"]), folder, given, perfdiff=PERFDIFF, curl=CURL)


def calls(folder: Path) -> list[list[str]]:
    return [line.split("\037")[:-1] for line in (folder / "calls").read_text().splitlines()]


def parsed(words: Sequence[str]) -> Mapping[str, Any]:
    """Return the options as perfdiff's own command line takes them; raises where it would refuse them."""
    name, own = cli.command_of(words[: words.index("--")] if "--" in words else words)
    context = get_command(import_module(f"perfdiff.cli.{name}").app).make_context("perfdiff", own)
    return context.params


@pytest.mark.parametrize(("status", "code", "lenient"), [(0, 0, 0), (1, 1, 0), (2, 2, 2), (3, 3, 3), (4, 0, 0)])
def test_github_reports_first_and_fails_last(tmp_path: Path, status: int, code: int, lenient: int) -> None:
    done, outputs = compared_on_github(tmp_path, status)
    assert outputs["status"] == str(status)
    if status in (2, 3):
        assert done.returncode == status
        return
    assert done.returncode == 0, done.stderr
    reports = sorted(path.name for path in Path(outputs["reports"]).iterdir())
    assert reports == ["perfdiff.html", "perfdiff.json", "perfdiff.md", "perfdiff.sarif"]
    for fail, expected in (("true", code), ("false", lenient)):
        assert run(step("Verdict")["run"], tmp_path, {"STATUS": str(status), "FAIL": fail}).returncode == expected


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4])
def test_gitlab_passes_the_exit_code_on_and_allows_what_is_open(tmp_path: Path, status: int) -> None:
    done = compared_on_gitlab(tmp_path, status)
    assert done.returncode == status, done.stderr
    assert job()["allow_failure"] == {"exit_codes": [4]}
    if status not in (2, 3):
        kept = {*job()["artifacts"]["paths"], *job()["artifacts"]["reports"].values()}
        assert kept == {path.name for path in tmp_path.glob("perfdiff.*")}


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_commands_are_taken_by_the_real_command_line(tmp_path: Path, service: str) -> None:
    arguments = "--workload 'small sizes' --param n=1,2 -- ./bench {n} \"$(touch there)\""
    if service == "github":
        compared_on_github(tmp_path, 1, ARGS=arguments)
    else:
        compared_on_gitlab(tmp_path, 1, ARGS=arguments)
    made = calls(tmp_path)
    assert len(made) == (3 if service == "github" else 2)
    for words in made[:-1]:
        params = parsed(words)
        assert params["workload"] == ["small sizes"]
        assert params["strict"]
        assert words[words.index("--") :] == ["--", "./bench", "{n}", "$(touch there)"]
    forms = {options.report_format(None, Path(file), options.SUFFIXES) for file in parsed(made[0])["output_files"]}
    assert len(forms) == len(parsed(made[0])["output_files"]), "each suffix chooses a format of its own"
    assert made[-1][:2] == ["cache", "prune"]
    assert get_command(cache.app).commands["prune"].make_context("prune", made[-1][2:]).params["days"] == 14


def test_a_command_that_perfdiff_would_refuse_is_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        parsed(["a", "b", "--no-such-option"])


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_what_variables_hold_is_never_executed(tmp_path: Path, service: str) -> None:
    given = {"BASE": HOSTILE, "HEAD": HOSTILE, "ARGS": shlex.quote(HOSTILE)}
    if service == "github":
        compared_on_github(tmp_path, 0, **given)
    else:
        compared_on_gitlab(tmp_path, 0, **given)
    assert calls(tmp_path)[0][-3:] == [HOSTILE] * 3
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_arguments_that_are_no_words_end_the_job(tmp_path: Path, service: str) -> None:
    given = {"ARGS": "--workload 'open", "GITHUB_OUTPUT": str(tmp_path / "output")}
    script = step("Compare")["run"] if service == "github" else "\n".join(job()["script"])
    done = run(script, tmp_path, {"BASE": "a", "HEAD": "b", "STATUS": "0", **given}, perfdiff=PERFDIFF)
    assert done.returncode not in (0, 4)
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(
    ("version", "wanted"),
    [("", "/where/it/lies"), ("0.1.0", "perfdiff==0.1.0"), ("git+https://x/perfdiff@main", "git+https://x/perfdiff@main")],
)
def test_github_installs_what_is_asked_for_and_puts_nothing_else_on_path(tmp_path: Path, version: str, wanted: str) -> None:
    python = '#!/bin/sh\nmkdir -p "$3/bin"\nprintf \'#!/bin/sh\\necho "$@" > asked\\n\' > "$3/bin/pip"\nchmod +x "$3/bin/pip"\n'
    variables = {"VERSION": version, "GITHUB_ACTION_PATH": "/where/it/lies", "GITHUB_PATH": str(tmp_path / "path")}
    done = run(step("Install perfdiff")["run"], tmp_path, variables, python3=python)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "asked").read_text().split()[-1] == wanted
    [folder] = (tmp_path / "path").read_text().splitlines()
    assert [path.name for path in Path(folder).iterdir()] == ["perfdiff"]


def commented_on_github(folder: Path, name: str = "perfdiff", report: str = "the report") -> None:
    (folder / "perfdiff.md").write_text(f"{report}\n")
    variables = {"GITHUB_REPOSITORY": "me/project", "NUMBER": "7", "NAME": name, "REPORTS": str(folder), "GH_TOKEN": "secret"}
    done = run(step("Comment")["run"], folder, variables, gh=GH)
    assert done.returncode == 0, done.stderr


def commented_on_gitlab(folder: Path, name: str = "perfdiff", report: str = "the report") -> None:
    (folder / "perfdiff.md").write_text(f"{report}\n")
    variables = {
        "COMMENT": str(job()["variables"]["COMMENT"]),
        "PERFDIFF_COMMENT_TOKEN": "secret",
        "CI_JOB_NAME": name,
        "CI_API_V4_URL": "https://lab/api/v4",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "status": "0",
    }
    done = run(job()["script"][1], folder, variables, curl=CURL)
    assert done.returncode == 0, done.stderr


COMMENTED = {"github": (commented_on_github, "github-actions[bot]"), "gitlab": (commented_on_gitlab, "me")}


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq, which stands in for gh's own, is not installed")
@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_one_comment_is_written_and_then_updated(tmp_path: Path, service: str) -> None:
    comment, user = COMMENTED[service]
    strangers = [[number, None, "<!-- perfdiff: perfdiff -->\nnot mine"] for number in range(1, 104)]
    (tmp_path / "comments.json").write_text(json.dumps(strangers))
    comment(tmp_path)
    first = [104, user, "<!-- perfdiff: perfdiff -->\nthe report\n"]
    assert json.loads((tmp_path / "comments.json").read_text()) == [*strangers, first]
    comment(tmp_path, report="slower $(touch there)")
    updated = [104, user, "<!-- perfdiff: perfdiff -->\nslower $(touch there)\n"]
    assert json.loads((tmp_path / "comments.json").read_text()) == [*strangers, updated]
    comment(tmp_path, name="other sizes")
    other = [105, user, "<!-- perfdiff: other sizes -->\nthe report\n"]
    assert json.loads((tmp_path / "comments.json").read_text()) == [*strangers, updated, other]
    assert not (tmp_path / "there").exists()


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq, which stands in for gh's own, is not installed")
@pytest.mark.parametrize("service", ["github", "gitlab"])
def test_of_several_comments_one_is_left(tmp_path: Path, service: str) -> None:
    comment, user = COMMENTED[service]
    line_end = "\r\n" if service == "github" else "\n"
    mine = [[number, user, f"<!-- perfdiff: perfdiff -->{line_end}earlier"] for number in (3, 5, 8)]
    mentions = [[4, user, "see <!-- perfdiff: perfdiff -->"], [9, None, "a deleted user's"]]
    (tmp_path / "comments.json").write_text(json.dumps([*mine, *mentions]))
    comment(tmp_path)
    assert json.loads((tmp_path / "comments.json").read_text()) == [[3, user, "<!-- perfdiff: perfdiff -->\nthe report\n"], *mentions]


@pytest.mark.parametrize(("is_wished", "token"), [(False, "secret"), (True, "")])
def test_gitlab_gets_no_comment_without_wish_and_token(tmp_path: Path, is_wished: bool, token: str) -> None:
    wish = job(comment=is_wished)["variables"]["COMMENT"]
    done = compared_on_gitlab(tmp_path, 1, COMMENT=wish, PERFDIFF_COMMENT_TOKEN=token)
    assert (done.returncode, done.stderr) == (1, "")
    assert not (tmp_path / "comment.md").exists()


def test_the_guide_s_command_is_taken_by_the_real_command_line() -> None:
    [line] = re.findall(r"^sh '(perfdiff [^|]*) \|\|.*'$", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    parsed(shlex.split(line)[1:])
