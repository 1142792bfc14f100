"""A project made importable as it lies in its tree, as an editable install would, without its back end."""

from __future__ import annotations

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
