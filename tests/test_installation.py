"""What an installation carries besides the code: the texts behind slugs, and the manual page."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def tracked(*paths: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", *paths], cwd=ROOT, check=True, capture_output=True)
    return listed.stdout.decode().split("\0")[:-1]


def test_a_wheel_of_what_the_container_copies_has_the_texts_behind_messages_and_the_manual_page(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for line in (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines():
        if line.startswith("COPY "):
            *sources, target = line.split()[1:]
            assert all((ROOT / source).exists() for source in sources)
            for name in tracked(*sources):
                place = tree / target.removeprefix("/source").strip("/")
                place = place / name.removeprefix(f"{sources[0]}/") if (ROOT / sources[0]).is_dir() else place / Path(name).name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place, follow_symlinks=False)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(tree)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        assert content.read("perfdiff/cli/pages/messages.md") == (ROOT / "docs" / "messages.md").read_bytes()
        assert any(name.endswith("share/man/man1/perfdiff.1") for name in content.namelist())
        packed = {name for name in content.namelist() if name.startswith("perfdiff/")}
        assert {name for name in tracked("perfdiff") if name.endswith(".py")} <= packed
