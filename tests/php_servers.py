"""PHP's own servers on the loopback address, with probes in the program that they serve."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

import php_programs
from php_programs import Program

_START_S = 20.0
_BEGIN, _END, _PARAMS, _STDIN, _STDOUT = 1, 3, 4, 5, 6  # kinds of FastCGI records
_POOL = """\
[global]
error_log = {folder}/fpm.log
daemonize = no
[www]
{user}
listen = {folder}/fpm.sock
pm = static
pm.max_children = {workers}
pm.max_requests = {requests}
"""
_APACHE = """\
ServerName 127.0.0.1
ServerRoot {folder}
PidFile {folder}/apache.pid
ErrorLog {folder}/apache.log
Listen 127.0.0.1:{port}
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule php_module {modules}/libphp{version}.so
StartServers 1
MaxRequestWorkers 1
DocumentRoot {tree}
<Location />
    Require all granted
</Location>
<FilesMatch "[.]php$">
    SetHandler application/x-httpd-php
</FilesMatch>
"""
_APACHE_MODULES = Path("/usr/lib/apache2/modules")


@contextmanager
def started(command: list[str | Path], ready: Path | int, folder: Path, variables: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server that listens on a socket's path or a port of the loopback address; what still runs at the end is killed."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=dict(variables), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        limit = time.monotonic() + _START_S
        while not answers(ready):
            assert process.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < limit, "the server is not ready"
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()


def answers(ready: Path | int) -> bool:
    """Return whether somebody listens there."""
    try:
        with connection(ready):
            return True
    except OSError:
        return False


def connection(place: Path | int) -> socket.socket:
    """Return a connection to a socket's path or a port."""
    if isinstance(place, int):
        return socket.create_connection(("127.0.0.1", place), timeout=20)
    found = socket.socket(socket.AF_UNIX)
    found.settimeout(20)
    try:
        found.connect(str(place))
    except OSError:
        found.close()
        raise
    return found


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def fpm(program: Program, variables: Mapping[str, str], workers: int = 1, requests: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """Run php-fpm over a program's tree, with so many workers, each for so many requests."""
    found = shutil.which(f"php-fpm{'.'.join(map(str, php_programs.interpreter().version))}", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip("needs php-fpm (Debian: php8.2-fpm)")
    is_root = os.getuid() == 0
    user = "user = root\ngroup = root" if is_root else ""
    (program.folder / "fpm.conf").write_text(_POOL.format(folder=program.folder, user=user, workers=workers, requests=requests))
    command = [found, "-F", "-y", program.folder / "fpm.conf", *(["-R"] if is_root else [])]
    with started(command, program.folder / "fpm.sock", program.folder, variables) as process:
        yield process


@contextmanager
def apache(program: Program, variables: Mapping[str, str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run Apache with PHP as its module over a program's tree, with one process for requests, as a user that is not root."""
    found, version = shutil.which("apache2", path=f"{os.environ['PATH']}:/usr/sbin"), ".".join(map(str, php_programs.interpreter().version))
    if found is None or not (_APACHE_MODULES / f"libphp{version}.so").is_file():
        pytest.skip("needs Apache's module (Debian: libapache2-mod-php)")
    settings = _APACHE.format(folder=program.folder, tree=program.tree, port=port, modules=_APACHE_MODULES, version=version)
    (program.folder / "apache.conf").write_text(settings)
    another_user = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.getuid() == 0 else []
    with started(
        [*another_user, found, "-D", "FOREGROUND", "-f", program.folder / "apache.conf"], port, program.folder, variables
    ) as process:
        try:
            yield process
        finally:
            process.terminate()  # with its children, all of its group
            process.wait()


def ask(program: Program, query: str = "", body: bytes = b"") -> str:
    """Ask php-fpm for `main.php`, and return what it prints behind its headers."""
    given = {
        "SCRIPT_FILENAME": str(program.tree / "main.php"),
        "REQUEST_METHOD": "POST" if body else "GET",
        "QUERY_STRING": query,
        "CONTENT_TYPE": "application/x-www-form-urlencoded",
        "CONTENT_LENGTH": str(len(body)),
    }
    pairs = b"".join(struct.pack(">BB", len(name), len(value) | 0) + f"{name}{value}".encode() for name, value in given.items())
    with connection(program.folder / "fpm.sock") as channel:
        sent = (
            _record(_BEGIN, struct.pack(">HB5x", 1, 0)),
            _record(_PARAMS, pairs),
            _record(_PARAMS),
            _record(_STDIN, body),
            _record(_STDIN),
        )
        channel.sendall(b"".join(sent if body else (*sent[:3], sent[4])))
        return _answer(channel).partition(b"\r\n\r\n")[2].decode()


def _record(kind: int, content: bytes = b"") -> bytes:
    return struct.pack(">BBHHBx", 1, kind, 1, len(content), 0) + content


def _answer(channel: socket.socket) -> bytes:
    answer = b""
    while True:
        head = _read(channel, 8)
        if not head:
            return answer
        _, kind, _, length, padding = struct.unpack(">BBHHBx", head)
        content = _read(channel, length + padding)[:length]
        if kind == _STDOUT:
            answer += content
        if kind == _END:
            return answer


def _read(channel: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = channel.recv(size - len(content))
        if not part:
            return b""
        content += part
    return content
