"""Servers and their databases, known by files of a source tree: what `init` proposes as services."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
_IMAGE = re.compile(r"^\s*image:\s*[\"']?(?:[\w.-]+(?::\d+)?/)*(\w+)", re.MULTILINE)
_WEB = re.compile(r"^web:\s*(\S.*?)\s*$", re.MULTILINE)
_PORT = re.compile(r"\$\{?PORT\}?")
_POOL = re.compile(r"^\s*pm\s*=", re.MULTILINE)
_PASSED = re.compile(r"\bfastcgi_pass\b")
_FOLDERS = ("", "config", "conf", "etc", "docker", "deploy")
_PAGES = ("public", "web", "src", "")
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Hint:
    """A service that a `file` tells of: its name, and the other keys of its table in their order."""

    file: str
    name: str
    keys: tuple[tuple[str, str | bool], ...]

    @property
    def lines(self) -> Iterator[str]:
        """Yield its table's lines."""
        yield "[[service]]"
        yield f"name = {json.dumps(self.name)}"
        yield from (f"{key} = {json.dumps(value)}" for key, value in self.keys)


_MYSQL = (
    ("outside", True),
    (
        "install",
        "mariadb-install-db --no-defaults --user=$(id -un) --datadir={folder}/data --skip-test-db --auth-root-authentication-method=normal",
    ),
    (
        "command",
        "exec mariadbd --no-defaults --user=$(id -un) --datadir={folder}/data --socket={folder}/s --bind-address=127.0.0.1 --port={port}",
    ),
    ("ready_command", "mariadb-admin --no-defaults --user=root --socket={folder}/s ping"),
    ("setup", "mariadb --no-defaults --user=root --socket={folder}/s < schema.sql"),
)
_POSTGRES = (
    ("outside", True),
    ("install", "initdb -D {folder}/data -A trust -U app"),
    ("command", "exec postgres -D {folder}/data -k {folder} -h 127.0.0.1 -p {port}"),
    ("setup", "psql -h 127.0.0.1 -p {port} -U app -d postgres -q -f schema.sql"),
    ("stop", "INT"),
)
_DATABASES: dict[str, tuple[tuple[str, str | bool], ...]] = {
    "mariadb": _MYSQL,
    "mysql": _MYSQL,
    "postgres": _POSTGRES,
    "redis": (("outside", True), ("command", "exec redis-server --bind 127.0.0.1 --port {port} --dir {folder} --save ''")),
    "memcached": (("outside", True), ("command", "exec memcached -l 127.0.0.1 -p {port}")),
}


def hints(folder: Path) -> tuple[Hint, ...]:
    """Return the services of a project, in the order in which they start: databases, then what answers requests; nothing of a library."""
    return (*_databases(folder), *_answering(folder))


def _databases(folder: Path) -> Iterator[Hint]:
    for file in (name for name in _COMPOSE if (folder / name).is_file()):
        images = dict.fromkeys(name for name in _IMAGE.findall(_text(folder / file)) if name in _DATABASES)
        for number, name in enumerate(images):
            yield Hint(file, "db" if number == 0 else name, _DATABASES[name])
        return


def _answering(folder: Path) -> tuple[Hint, ...]:
    """Return what answers requests, as the first file that is known tells."""
    if (folder / "Procfile").is_file() and (web := _WEB.search(_text(folder / "Procfile"))):
        command = _PORT.sub("{port}", web[1])
        before = "" if "{port}" in command else "PORT={port} "
        return (Hint("Procfile", "app", (("command", f"{before}exec {command}"),)),)
    if (folder / "manage.py").is_file():
        return (Hint("manage.py", "app", (("command", "exec python manage.py runserver --noreload 127.0.0.1:{port}"), ("stop", "INT"))),)
    wsgi = next((path for path in sorted((*folder.glob("wsgi.py"), *folder.glob("*/wsgi.py"), *folder.glob("src/*/wsgi.py")))), None)
    if wsgi is not None:
        file = wsgi.relative_to(folder)
        module = ".".join(file.with_suffix("").parts[1 if file.parts[0] == "src" else 0 :])
        return (Hint(file.as_posix(), "app", (("command", f"exec python -m gunicorn --bind 127.0.0.1:{{port}} {module}:application"),)),)
    return _fpm(folder) or _pages(folder)


def _fpm(folder: Path) -> tuple[Hint, ...]:
    """Return php-fpm, and nginx before it, where configurations of both lie in the tree."""
    files = [path for place in _FOLDERS for path in sorted((folder / place).glob("*.conf")) if path.is_file()]
    pool = next((path.relative_to(folder).as_posix() for path in files if _POOL.search(_text(path))), None)
    web = next((path.relative_to(folder).as_posix() for path in files if _PASSED.search(_text(path))), None)
    if pool is None:
        return ()
    fpm = (
        ("install", f"sed s,FOLDER,{{folder}}, {pool} > {{folder}}/pool.conf"),
        ("command", "exec php-fpm --nodaemonize --fpm-config {folder}/pool.conf"),
        ("ready_command", "test -S {folder}/php.sock"),
        ("stop", "QUIT"),
    )
    hints = (Hint(pool, "fpm", fpm),)
    if web is None:
        return hints
    nginx = (
        ("outside", True),
        ("keep", "run"),
        ("install", f"sed 's,PORT,{{port}},; s,PHP,{{fpm.folder}},' {{project}}/{web} > {{folder}}/nginx.conf"),
        ("command", "exec nginx -c {folder}/nginx.conf"),
        ("stop", "QUIT"),
    )
    return (*hints, Hint(web, "web", nginx))


def _pages(folder: Path) -> tuple[Hint, ...]:
    place = next((place for place in _PAGES if (folder / place / "index.php").is_file()), None)
    if place is None:
        return ()
    file = f"{place}/index.php".lstrip("/")
    return (Hint(file, "app", (("command", f"exec php -S 127.0.0.1:{{port}} -t {place or '.'}"),)),)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
