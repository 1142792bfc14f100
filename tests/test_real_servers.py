"""Servers and databases as distributions bring them, as services of runs: MariaDB, nginx in front of php-fpm, and a Python WSGI server."""

from __future__ import annotations

import getpass
import os
import shutil
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff.collect.execution.executor import Command, ProcessExecutor
from perfdiff.collect.serving.services import Services, Situation
from perfdiff.config import ServiceConfig
from test_processes import working_in

pytestmark = pytest.mark.integration

SYSTEM = {"PATH": f"{os.environ['PATH']}:/usr/sbin"}
FPM = next(
    (name for name in ("php-fpm8.4", "php-fpm8.3", "php-fpm8.2", "php-fpm8.1") if shutil.which(name, path=SYSTEM["PATH"])), "php-fpm"
)
PAGE = """
    <?php
    $database = new mysqli(null, getenv('USER_OF_DATABASE'), '', 'shop', 0, getenv('SOCKET_OF_DATABASE'));
    $rows = $database->query('SELECT name FROM items WHERE id <= ' . (int) $_GET['n'])->fetch_all();
    echo implode(',', array_map(fn ($row) => $row[0], $rows));
"""
POOL = """
    [global]
    error_log = /dev/stderr
    daemonize = no
    [www]
    listen = FOLDER/php.sock
    pm = static
    pm.max_children = 2
    clear_env = no
"""
NGINX = """
    daemon off;
    pid FOLDER/nginx.pid;
    error_log stderr;
    events {}
    http {
        access_log off;
        client_body_temp_path FOLDER/body;
        fastcgi_temp_path FOLDER/fastcgi;
        proxy_temp_path FOLDER/proxy;
        uwsgi_temp_path FOLDER/uwsgi;
        scgi_temp_path FOLDER/scgi;
        server {
            listen 127.0.0.1:PORT;
            location / {
                fastcgi_pass unix:PHP/php.sock;
                fastcgi_param SCRIPT_FILENAME ROOT/page.php;
                fastcgi_param QUERY_STRING $query_string;
                fastcgi_param REQUEST_METHOD $request_method;
            }
        }
    }
"""
SCHEMA = """
    DROP DATABASE IF EXISTS shop;
    CREATE DATABASE shop;
    CREATE TABLE shop.items (id INT PRIMARY KEY, name VARCHAR(20));
    INSERT INTO shop.items SELECT seq, CONCAT('item', seq) FROM shop_numbers;
"""
ASK = """
    import sys, urllib.request
    with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/?n={sys.argv[2]}") as answer:
        print(answer.read().decode())
"""
ROOT = "-R " if os.geteuid() == 0 else ""  # php-fpm asks for it
DB = ServiceConfig(
    "db",
    f"exec mariadbd --no-defaults --user={getpass.getuser()} --datadir={{folder}}/data --socket={{folder}}/s --bind-address=127.0.0.1 "
    "--port={port} --skip-log-bin",
    outside=True,
    install=f"mariadb-install-db --no-defaults --user={getpass.getuser()} --datadir={{folder}}/data --skip-test-db "
    "--auth-root-authentication-method=normal > {folder}/install.log",
    ready_command="mariadb-admin --no-defaults --user=root --socket={folder}/s ping",
    setup="mariadb --no-defaults --user=root --socket={folder}/s < schema.sql",
)
APP = ServiceConfig(
    "app",
    f"exec {FPM} {ROOT}--nodaemonize --fpm-config {{folder}}/pool.conf",
    install="sed s,FOLDER,{folder}, pool.conf > {folder}/pool.conf",
    environment={"SOCKET_OF_DATABASE": "{db.folder}/s", "USER_OF_DATABASE": "root"},
    ready_command="test -S {folder}/php.sock",
    stop="QUIT",
)
WEB = ServiceConfig(
    "web",
    "exec nginx -c {folder}/nginx.conf",
    install='sed "s,FOLDER,{folder},; s,PORT,{port},; s,PHP,{app.folder},; s,ROOT,$PWD," nginx.conf > {folder}/nginx.conf',
    ready="http://127.0.0.1:{port}/?n=0",
    stop="QUIT",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    user = "" if os.geteuid() else "user root;\n"  # the folder is for nobody else
    numbers = " UNION ALL ".join(f"SELECT {number} AS seq" for number in range(1, 51))
    texts = {
        "page.php": PAGE,
        "pool.conf": POOL + ("" if os.geteuid() else "    user = root\n    group = root\n"),
        "nginx.conf": NGINX,
        "schema.sql": SCHEMA.replace("shop_numbers", f"({numbers}) AS numbers"),
        "ask.py": ASK,
    }
    for name, text in texts.items():
        (folder / name).write_text((user if name == "nginx.conf" else "") + textwrap.dedent(text).lstrip())
    return folder


def test_a_page_of_php_behind_nginx_asks_a_database_that_is_laid_anew(tree: Path) -> None:
    executor, environment = ProcessExecutor(), dict(SYSTEM)
    services = Services((DB, APP, WEB), environment, tree, tree.parent / "logs")
    ask = f"{sys.executable} ask.py {{web.port}} 3 > answer"
    command = Command(ask, tree, environment, 60.0, (0,), "head, page")
    spoil = "mariadb --no-defaults --user=root --socket={folder}/s -e 'DELETE FROM shop.items'"
    folders = []
    try:
        for _ in range(2):
            with services.around(Situation(command, command, {}), executor) as served:
                found = served.execute(executor)
                assert (tree / "answer").read_text() == "item1,item2,item3\n"
                assert found.cpu_ns > 1e6
                folders.append(served.services[0].places["folder"])
                assert len(served.services[1].family) >= 3  # the master and its workers
                executor.execute(replace(served.command, text=spoil.replace("{folder}", folders[0])))
    finally:
        services.close()
    assert len(set(folders)) == 1
    assert working_in(tree) == []
    assert not Path(folders[0]).exists()
