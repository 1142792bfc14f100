"""The documentation site: it builds without a warning, its links hold, it asks nothing of other hosts, and what it shows can be typed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from perfdiff.cli import COMPARISON, command_of
from perfdiff.cli.whole import command
from perfdiff.configuration import load
from test_documentation import FENCE, ROOT, spoken

DOCS = ROOT / "docs"
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
GUIDES = [DOCS / "index.md", DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("*.md"))]
LOADED = {("script", "src"), ("img", "src"), ("img", "srcset"), ("iframe", "src"), ("source", "src"), ("object", "data"), ("link", "href")}
NAMED = {("link", "canonical"), ("link", "prev"), ("link", "next")}  # links that name a page and load nothing
# How these pages name revisions; what is none of these would be a command that does not exist.
REVISION = re.compile(r"(HEAD|BASE|COMMIT|main|origin/main|base|head|v\d|[0-9a-f]{7,40}\b)")
needs_mkdocs = pytest.mark.skipif(find_spec("material") is None, reason="mkdocs-material is not installed: scripts/install site")


def built(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build a site as scripts/site does."""
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(site)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = built(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


@dataclass
class Read(HTMLParser):
    """What a built page refers to: `anchors` of its own, `links` for the reader to follow, and what it makes the browser `load`."""

    file: Path
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        text = self.file.read_text(encoding="utf-8")
        self.feed(text)
        self.loads += re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name, value in attrs if name in {"id", "name"} and value}
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        if (tag, values.get("rel")) not in NAMED:
            self.loads += [value for name, value in attrs if (tag, name) in LOADED and value]


@needs_mkdocs
def test_every_page_stands_in_the_navigation(site: Path) -> None:
    linked = {urlsplit(link).path for link in Read(site / "index.html").links}
    assert [page for page in PAGES if page.replace(".md", ".html") not in linked] == []


@needs_mkdocs
def test_all_links_and_anchors_within_the_site_hold(site: Path) -> None:
    pages = {file: Read(file) for file in site.rglob("*.html") if file.name != "404.html"}
    assert len(pages) == len(PAGES)
    broken, followed = [], 0
    for file, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            held = target.is_file() and (not address.fragment or target not in pages or unquote(address.fragment) in pages[target].anchors)
            followed += 1
            broken += [] if held else [f"{file.relative_to(site)}: {link}"]
    assert broken == []
    assert followed > len(PAGES) ** 2, "the navigation alone has more"


@needs_mkdocs
def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loads = [(file.name, str(load)) for file in site.rglob("*.html") for load in Read(file).loads]
    for sheet in site.rglob("*.css"):
        loads += [
            (sheet.name, "".join(found)) for found in re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", sheet.read_text())
        ]
    assert any(load.endswith(".js") for _, load in loads)
    assert any(load.endswith(".css") for _, load in loads)
    assert [each for each in loads if urlsplit(each[1]).scheme not in {"", "data"} or urlsplit(each[1]).netloc] == []


@needs_mkdocs
def test_broken_links_and_forgotten_pages_fail_the_build(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "docs" / "forgotten.md").write_text("[a](report.md#no-such-heading) [b](howto/no-such-page.md)\n", encoding="utf-8")
    done = built(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    complaints = ("- forgotten.md", "'howto/no-such-page.md', but the target is not found", "does not contain an anchor '#no-such-heading'")
    assert [complaint for complaint in complaints if complaint not in done.stderr] == []


def parse(line: str) -> None:
    """Parse a command that a page shows as the command line does; raises where that would refuse it, or takes a word for a revision."""
    # What the shell does with the output, the workload and the comment are none of its business.
    written = shlex.split(line, comments=True)
    words = list(takewhile(lambda word: word not in {"--", "|", "||", "&&", ";", ">"}, written))[1:]
    name, words = command_of(words, written)
    each = command(name)
    below = getattr(each, "commands", {})
    each = below[words.pop(0)] if words and words[0] in below else each
    parameters = each.make_context(name, words).params
    if name == COMPARISON:
        assert len(parameters["revisions"]) <= 2, f"{line}: more than two revisions"
        assert all(map(REVISION.match, parameters["revisions"])), f"{line}: no command, and no revision as these pages name them"


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_commands_of_the_guides_can_be_typed(guide: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    blocks = "\n".join(match.group(0) for match in FENCE.finditer(text) if match.group(1) != "console")
    # What stands behind no prompt on a console is output.
    prompts = re.findall(r"^\$ .*$", "".join(block for language, block in FENCE.findall(text) if language == "console"), re.MULTILINE)
    lines = [*spoken(blocks), *spoken("\n".join(["```console", *prompts, "```", ""]))]
    assert lines
    for line in lines:
        parse(line)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("perfdiff v1 v2 --formt json", "No such option"),
        ("perfdiff v1 v2 --format jsn", "is not one of"),
        ("perfdiff explain", "Missing"),
        ("perfdiff bisct v1 v2", "more than two revisions"),
        ("perfdiff acept insert", "no revision"),
    ],
)
def test_a_command_that_cannot_be_typed_would_be_seen(line: str, complaint: str) -> None:
    with pytest.raises(Exception, match=complaint):
        parse(line)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_configuration_and_scripts_of_the_guides_exist(guide: Path, tmp_path: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    blocks = [block for language, block in FENCE.findall(text) if language == "toml"]
    requests = [block for block in blocks if block.startswith("# requests.toml")]
    for block in requests:  # read by the workload that names them
        (tmp_path / "requests.toml").write_text(block, encoding="utf-8")
    for block in blocks:
        if block not in requests:
            (tmp_path / "perfdiff.toml").write_text(block, encoding="utf-8")
            load(tmp_path, environment={}, measuring=False)
    assert [name for name in re.findall(r"\bscripts/\w+", text) if not (ROOT / name).is_file()] == []
