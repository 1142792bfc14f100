"""A project made importable as it lies in its tree: without its back end, and the code that this compiled there."""

from __future__ import annotations

import filecmp
import json
from pathlib import Path

from perfdiff.languages.python import layout as layouts
from perfdiff.languages.python.layout import Layout
from perfdiff.languages.python.projects import Project
from perfdiff.languages.python.pyproject import normal

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirements}"


def lay_out(layout: Layout, project: Project, place: Path) -> None:
    """Have an environment find the modules, version, entry points and scripts of the project in the folder `place`; raise OSError."""
    assert project.roots is not None
    layouts.add_paths(layout, "project", project.roots)
    name = normal(project.name or "").replace("-", "_")
    folder = layout.site_packages / f"{name}-{project.version}.dist-info"
    folder.mkdir()
    requirements = "".join(f"Requires-Dist: {requirement}\n" for requirement in project.requirements or ())
    (folder / "METADATA").write_text(_METADATA.format(name=project.name, version=project.version, requirements=requirements))
    (folder / "INSTALLER").write_text("perfdiff\n")
    (folder / "direct_url.json").write_text(json.dumps({"url": place.as_uri(), "dir_info": {"editable": True}}))
    points = {group: named for group, named in project.entry_points.items() if named}
    if points:
        sections = (f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items()) for group, named in points.items())
        (folder / "entry_points.txt").write_text("".join(sections))
    (folder / "RECORD").write_text(
        "".join(f"{folder.name}/{file.name},,\n" for file in sorted(folder.iterdir())) + f"{folder.name}/RECORD,,\n"
    )
    for group in ("console_scripts", "gui_scripts"):
        layouts.add_scripts(layout, points.get(group, {}))


def lead_back(layout: Layout, tree: Path) -> None:
    """Have an environment find compiled modules where the build left them in the tree, and not copies of them; raise OSError.

    They belong to the tree then, whose programs are compared, linked in several layouts, and put back after each run.
    """
    copies = _libraries(layout.site_packages)
    built = _libraries(tree.resolve()) if copies else []
    for copy in copies:
        same = next((path for path in built if filecmp.cmp(path, copy, shallow=False)), None)
        if same is not None:
            copy.unlink()
            copy.symlink_to(same)


def _libraries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.so") if path.is_file() and not path.is_symlink()]
