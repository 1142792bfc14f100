"""What an installation carries besides the code: the texts behind slugs, and the manual page."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_a_wheel_has_the_texts_behind_messages_and_the_manual_page(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    files = subprocess.run(
        ["git", "ls-files", "-z", "perfdiff", "docs/messages.md", "pyproject.toml", "README.md"], cwd=ROOT, check=True, capture_output=True
    )
    for name in files.stdout.decode().split("\0")[:-1]:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(tree)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        assert content.read("perfdiff/cli/pages/messages.md") == (ROOT / "docs" / "messages.md").read_bytes()
        assert any(name.endswith("share/man/man1/perfdiff.1") for name in content.namelist())
