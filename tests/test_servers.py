"""Servers that a project's files tell of: what `init` proposes for them is a configuration that is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiff import configuration
from perfdiff.cli.init import project_in, template
from perfdiff.configuration import servers

COMPOSE = """
services:
  web:
    build: .
  database:
    image: "docker.io/library/mariadb:11"
  cache:
    image: redis:7
"""
POOL = "[www]\nlisten = FOLDER/php.sock\npm = static\n"


def tree(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "names", "command"),
    [
        ({"composer.json": "{}"}, [], None),
        ({"public/index.php": "<?php"}, ["app"], "exec php -S 127.0.0.1:{port} -t public"),
        ({"docker-compose.yml": COMPOSE, "index.php": "<?php"}, ["db", "redis", "app"], "exec php -S 127.0.0.1:{port} -t ."),
        ({"compose.yaml": "services:\n  x:\n    image: nothing\n"}, [], None),
        ({"Procfile": "web: gunicorn shop:app --bind 0.0.0.0:$PORT\n"}, ["app"], "exec gunicorn shop:app --bind 0.0.0.0:{port}"),
        ({"Procfile": "worker: x\nweb: python app.py\n"}, ["app"], "PORT={port} exec python app.py"),
        ({"manage.py": "", "shop/wsgi.py": ""}, ["app"], "exec python manage.py runserver --noreload 127.0.0.1:{port}"),
        ({"src/shop/wsgi.py": ""}, ["app"], "exec python -m gunicorn --bind 127.0.0.1:{port} shop.wsgi:application"),
        ({"docker/pool.conf": POOL}, ["fpm"], "exec php-fpm --nodaemonize --fpm-config {folder}/pool.conf"),
        ({"pool.conf": POOL, "conf/nginx.conf": "fastcgi_pass unix:PHP/php.sock;"}, ["fpm", "web"], "exec nginx -c {folder}/nginx.conf"),
    ],
)
def test_what_init_proposes_of_a_server_is_read_once_it_is_no_comment(
    files: Mapping[str, str], names: list[str], command: str | None, tmp_path: Path
) -> None:
    text = template(project_in(tree(tmp_path, {"composer.json": "{}"})), servers.hints(tree(tmp_path, files)))
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    first = lines.index("[[service]]") if "[[service]]" in lines else len(lines)
    end = next((number for number in range(first, len(lines)) if not lines[number]), len(lines))
    proposed = "\n".join(line for line in lines[first:end] if line != "#")
    tree(tmp_path, {"perfdiff.toml": f"{text}\n{proposed}\n"})
    found = configuration.load(tmp_path, environment={}, measuring=False).services
    assert [service.name for service in found] == names
    assert (found[-1].command if found else None) == command
    assert ("docs/howto/server.md" in text) == bool(names)
