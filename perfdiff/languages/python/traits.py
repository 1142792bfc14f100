"""What is known of Python without its pack loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from perfdiff.config import DRIVER
from perfdiff.languages.traits import (
    DRAFT,
    BuildCause,
    Building,
    Files,
    Forking,
    Holding,
    Key,
    KeyKind,
    Price,
    Queries,
    Running,
    Traits,
    Wording,
    parsed,
)


@dataclass(frozen=True, slots=True)
class PythonConfig:
    """`[python]`: the interpreter of a project's programs, and what is installed for them.

    `requirements` are names of requirements files, or requirements, beside those of the project; `optional` are more of them, left out
    where they cannot be installed. `editable` says how the project is installed; None: not at all where it can be imported as it lies in
    its tree, else editable.
    """

    interpreter: str | None = None  # by name or path; None: `python3`, as it is found on PATH
    requirements: tuple[str, ...] = ()
    editable: bool | None = None
    optional: tuple[str, ...] = ()


_VAGUE_CAUSES = (
    BuildCause(
        r"ERROR: No matching distribution found for (\S+)",
        "pip found no {}",
        "if it needs the network, download it by hand once and let [build] overlay copy it into both revisions",
    ),
    BuildCause(
        r"ModuleNotFoundError: No module named '(pkg_resources)'",
        "setuptools has had no {} since release 82",
        "`command = \"pip install 'setuptools<82' && pip install --no-build-isolation --editable .\"` under [build] takes an older one",
    ),
    BuildCause(
        r"ModuleNotFoundError: No module named '(asynchat|asyncore|distutils|imp|smtpd)'",
        "Python has had no module '{}' since 3.12",
        "name an older `interpreter` under [python]",
    ),
    BuildCause(
        r"ModuleNotFoundError: No module named '([\w.]+)'",
        "Python found no module '{}'",
        "let `command` under [build] install what the build needs, and build with `pip install --no-build-isolation --editable .`",
        without_error=True,
    ),
)
_HOLDINGS = {
    "modules": parsed("parsed sources of Python"),
    "python": Holding(
        "Python packages", (rf"[0-9a-f]{{24}}|wheels|pip-[\w.+-]+{DRAFT}",), holds_folders=True, beside=r"[0-9a-f]{24}\.lock"
    ),
}

TRAITS = Traits(
    name="python",
    title="Python",
    pack="perfdiff.languages.python.pack:made",
    host="perfdiff.languages.python.host:examine",
    project="perfdiff.languages.python.project:PythonProject",
    frameworks="perfdiff.languages.python.frameworks:FRAMEWORKS",
    settings=PythonConfig,
    keys={
        "interpreter": Key(KeyKind.TEXT, 'a name or path, such as "python3.12"'),
        "requirements": Key(
            KeyKind.TEXTS, 'a list of requirements files and requirements, such as ["bench/requirements.txt", ".[bench]", "group:bench"]'
        ),
        "optional": Key(KeyKind.TEXTS, 'a list of requirements, such as ["pytest-mock", "hypothesis"]'),
        "editable": Key(KeyKind.TRUTH),
    },
    unbuilt="each revision gets an environment of its own",
    wording=Wording(
        statuses=frozenset(("True", "False", "None")),
        itself=frozenset(("self",)),
        between=frozenset(("and", "async", "await", "else", "for", "from", "if", "in", "is", "lambda", "not", "or")),
    ),
    queries=Queries(
        functions=frozenset(("urllib.request.urlopen", "requests.get", "requests.post", "requests.request", "psycopg2.connect")),
        owners=("Cursor", "Connection", "Session", "Transaction"),
        methods=("execute", "executemany", "executescript", "query", "real_query", "request", "getresponse"),
        requests="urlopen|request|getresponse",
    ),
    # A line takes 60 ns in the median of 20 programs of CPython's own library (3.11 to 3.13; quartiles 21 and 107 ns), 150 ns in the
    # dearest of them, and up to twice as much on slower machines: what takes longer is work within it, on values of any size. One that only
    # assigns a constant took 6 ns, and new processors are about twice as fast.
    prices={"lines": Price(usual_ns=100.0, dearest_ns=300.0, work_ns=3.0)},
    files=Files(
        sources=frozenset((".py",)),
        packaging=frozenset(("pyproject.toml", "setup.py", "setup.cfg")),
        kept_folders=frozenset(("__pycache__",)),
        byte_code=".pyc",
        source_suffix=".py",
    ),
    building=Building(
        vague_causes=_VAGUE_CAUSES, holdings=_HOLDINGS, packages={"PIP_CACHE_DIR": ".cache/pip", "UV_CACHE_DIR": ".cache/uv"}
    ),
    running=Running(
        forking=Forking(re.compile(r"python[\d.]*"), Path(__file__).parent / "scripts" / "fork_server.py", ("-m", DRIVER)),
        options=r"\bpython[\d.]*\s+-O+\b|(?<![\w-])-X[\s\"',]+\w[\w=]*|\bPYTHON[A-Z]{3,}\s*[=:]\s*\S+",
    ),
)
