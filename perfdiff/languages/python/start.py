"""How the extension module gets into the processes of a target: by a line that Python executes at its start, where a run asks for it."""

from __future__ import annotations

from pathlib import Path

SHEET = "PERFDIFF_PYTHON"
EXTENSION = "PERFDIFF_EXTENSION"
LINES = "PERFDIFF_LINES"
LASTING = "PERFDIFF_LASTING"  # asks what is still allocated at the end
HOOK = "_perfdiff.pth"  # in the environment's site-packages

_HOOK = (
    f'import os; "{SHEET}" in os.environ and (lambda imp, module: imp.exec_dynamic(imp.create_dynamic(module)))'
    f'(__import__("_imp"), __import__("_frozen_importlib").ModuleSpec("_perfdiff", None, origin=os.environ["{EXTENSION}"]))\n'
)


def hook() -> str:
    """Return the text of the `.pth` file: it loads the module where the environment names a sheet, and does nothing otherwise.

    It imports nothing that is not there already, and leaves no name behind: the target finds no `_perfdiff` in `sys.modules`.
    """
    return _HOOK


def environment(sheet: Path, extension: Path) -> dict[str, str]:
    """Return the variables of a run whose functions are probed as the sheet says; the plan and the folder come beside them."""
    return {SHEET: str(sheet), EXTENSION: str(extension)}


def counting(sheet: Path, lines: Path, extension: Path) -> dict[str, str]:
    """Return the variables of a run whose calls are counted, too: `lines` is the sheet of `places`, `extension` of `build_counting`."""
    return {**environment(sheet, extension), LINES: str(lines)}
