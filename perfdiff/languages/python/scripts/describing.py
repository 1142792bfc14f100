"""Print what perfdiff has to know of the interpreter that runs this, as JSON."""

from __future__ import annotations

import importlib.util
import json
import platform
import site
import sys
import sysconfig


def _package(name: str) -> str | None:
    """Return the folder of a package that this interpreter finds."""
    spec = importlib.util.find_spec(name)
    return spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else None


def _bundled_wheels() -> str | None:
    """Return the folder of the wheels that `ensurepip` installs; distributions keep it in a place of their own."""
    if importlib.util.find_spec("ensurepip") is None:
        return None
    import ensurepip

    own = _package("ensurepip")
    bundled = getattr(ensurepip, "_WHEEL_PKG_DIR", None) or (f"{own}/_bundled" if own else None)
    return str(bundled) if bundled else None


def main() -> None:
    """Print the description."""
    scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    description = {
        "executable": getattr(sys, "_base_executable", None) or sys.executable,
        "implementation": platform.python_implementation(),
        "version": list(sys.version_info[:3]),
        "says": sys.version,
        "is_free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "site_packages": sysconfig.get_path("purelib", scheme, {"base": "", "platbase": ""}).lstrip("/"),
        "own_packages": site.getsitepackages(),
        "pip": _package("pip"),
        "wheels": _bundled_wheels(),
        "include": list(dict.fromkeys(map(sysconfig.get_path, ("include", "platinclude")))),
    }
    sys.stdout.write(json.dumps(description))


if __name__ == "__main__":
    main()
