"""Folders behind URLs, such as `s3://bucket/lab/v1`: as much of a path as records ask for, by fsspec.

Whoever may write there is trusted no more than whoever sends a folder: files are read through the same bounds and seals.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from perfdiff.errors import UsageError

_MARK = "://"
_LOCAL = "file://"
_PROBE = "writable"  # the name of a file that is there for a moment


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or folder by its URL."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """Return the last part of the URL."""
        return PurePosixPath(self.url).name

    @property
    def parent(self) -> Remote:
        """Return the path of the folder above."""
        protocol, _, path = self.url.partition(_MARK)
        return Remote(f"{protocol}{_MARK}{path.rstrip('/').rpartition('/')[0]}")

    def stat(self) -> os.stat_result:
        """Return the size of a file, and that it is one; raise OSError where there is none."""
        system, path = _opened(self.url)
        with _as_os_errors(self.url):
            info = system.info(path)
        kind = stat.S_IFREG if info["type"] == "file" else stat.S_IFDIR
        return os.stat_result((kind | 0o600, 0, 0, 1, 0, 0, int(info.get("size") or 0), 0, 0, 0))

    def exists(self) -> bool:
        """Return whether there is a file, or a folder with files; raise OSError where the store does not say."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_file(self) -> bool:
        """Return whether there is a file; raise OSError where the store does not say."""
        try:
            return stat.S_ISREG(self.stat().st_mode)
        except FileNotFoundError:
            return False

    def read_bytes(self) -> bytes:
        """Return the bytes of a file; raise OSError if it cannot be read."""
        system, path = _opened(self.url)
        with _as_os_errors(self.url):
            return bytes(system.cat_file(path))

    def write_file(self, source: Path) -> None:
        """Copy a local file to this path; raise OSError if that fails."""
        system, path = _opened(self.url)
        with _as_os_errors(self.url):
            # Where paths begin with a bucket, folders are parts of names, and who makes one makes the bucket, too, which was misspelt.
            if path.startswith("/"):
                system.makedirs(path.rpartition("/")[0], exist_ok=True)
            system.put_file(str(source), path)

    def require_writable(self) -> None:
        """Raise OSError where nothing can be written to a folder; a store tells it of what is written alone."""
        probe = self / _PROBE
        system, path = _opened(probe.url)
        with _as_os_errors(self.url):
            system.pipe_file(path, b"")
            with contextlib.suppress(PermissionError):  # who may add to a store may not always remove; nothing reads it
                system.rm_file(path)

    def files(self) -> tuple[Remote, ...]:
        """Return the files in a folder and below it, none where it is not there; raise OSError."""
        system, path = _opened(self.url)
        with _as_os_errors(self.url):
            return tuple(self / entry[len(path) :].lstrip("/") for entry in system.find(path) if entry.startswith(f"{path.rstrip('/')}/"))

    def remove(self) -> None:
        """Remove a file; raise OSError where that cannot be done."""
        system, path = _opened(self.url)
        with _as_os_errors(self.url):
            system.rm_file(path)


Folder = Path | Remote


def place(text: str | Path) -> Folder:
    """Return the folder that a text names: a URL, or a path of this machine."""
    if isinstance(text, Path) or _MARK not in text:
        return Path(text)
    return Path(text.removeprefix(_LOCAL)) if text.startswith(_LOCAL) else Remote(text)


def _opened(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it; raise UsageError where no library knows it."""
    protocol = url.partition(_MARK)[0]
    try:
        import fsspec
    except ImportError as error:
        raise UsageError(
            f"'{url}' is read and written by fsspec, which is not installed: pip install 'perfdiff[cluster]'", slug="url-unsupported"
        ) from error
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise UsageError(
            f"'{url}' needs a library for {protocol}{_MARK} that is not installed: {error}; install it beside perfdiff",
            slug="url-unsupported",
        ) from error
    except ValueError as error:
        raise UsageError(f"'{url}' is no place that fsspec knows: {error}", slug="url-unsupported") from error
    return system, str(path)


@contextmanager
def _as_os_errors(url: str) -> Iterator[None]:
    """Tell failures of stores' own libraries as failures of a file system; no library of theirs is loaded for it."""
    foreign = sys.modules.get("botocore.exceptions"), sys.modules.get("aiohttp.client_exceptions"), sys.modules.get("gcsfs.retry")
    names = ("BotoCoreError", "ClientError", "HttpError")
    kinds = tuple(getattr(module, name) for module in foreign if module is not None for name in names if hasattr(module, name))
    try:
        yield
    except kinds as error:
        raise OSError(None, str(error), url) from error
