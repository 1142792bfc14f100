"""How the extension gets into the processes of a target: by an ini file in one more folder that PHP looks through at its start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

SHEET = "PERFDIFF_PHP"
LINES = "PERFDIFF_LINES"
FOLDERS = "PHP_INI_SCAN_DIR"
INI = "ini"  # beside an extension: the folder with the file that has it loaded


def environment(sheet: Path, extension: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a run whose functions are probed as the sheet says; the plan and the folder come beside them.

    `environment` are the variables that the run has without us: folders of the user's own are looked through before ours. PHP that is told
    to read no ini file at all (`php -n`) does not load the extension.
    """
    return {SHEET: str(sheet), FOLDERS: f"{environment.get(FOLDERS, '')}:{extension.parent / INI}"}


def counting(sheet: Path, lines_sheet: Path, extension: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a run whose calls are counted, too.

    `lines_sheet` is the sheet of `places`, which says which files are the project's, `extension` of `build_counting`.
    """
    return {**environment(sheet, extension, given), LINES: str(lines_sheet)}


def text(extension: Path, settings: Iterable[tuple[str, str]]) -> str:
    """Return the text of the ini file that has an extension loaded, with settings that hold in its runs."""
    quoted = str(extension).replace("\\", "\\\\").replace('"', '\\"')
    return "".join(f"{line}\n" for line in (f'extension="{quoted}"', *(f"{name}={value}" for name, value in settings)))
