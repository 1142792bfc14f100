"""What is taken out of reports that leave the machine: secrets and homes, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdiff.report.privacy import learn

HOME = "/srv/people/jane"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "short-one"),
        ("DB_PASSWORD", "hunter2"),
        ("AWS_ACCESS_KEY_ID", "SOMEKEY123"),
        ("SENTRY_DSN", "https-key"),
        ("HARMLESS", "aB3dEfGh1jKlMn0pQrStUv"),
        ("CI_THING", "glpat-abcdefghijklmnop1234"),
    ],
)
def test_secrets_of_the_environment_are_named_and_not_shown(name: str, value: str) -> None:
    clean = learn({name: value}, (), home=HOME)
    assert clean(f"./prog --key {value} -v '{value}'") == f"./prog --key ${name} -v '${name}'"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SHELL", "/bin/bash"),
        ("PROJECT", "wireshark"),
        ("GIT_AUTHOR_NAME", "list_append"),
        ("PYTHONPATH", "/usr/lib/python3.11/Site-Packages"),
        ("TOKEN", "on"),
    ],
)
def test_ordinary_values_stay_in_texts(name: str, value: str) -> None:
    said = f"built with {value} in src/wireshark.c"
    assert learn({name: value}, (), home=HOME)(said) == said


def test_commits_stay_whatever_variable_holds_them() -> None:
    commit = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"
    assert learn({"RELEASE_KEY": commit}, (), home=HOME, known=[commit])(commit) == commit


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("./bench --password hunter22 {n}", "./bench --password … {n}"),
        ("./bench --api-key=hunter22", "./bench --api-key=…"),
        ("DB_PASSWORD='hunter22' ./bench", "DB_PASSWORD='…' ./bench"),
        ("make TOKEN=hunter22", "make TOKEN=…"),
    ],
)
def test_what_a_command_gives_as_a_secret_is_hidden_everywhere(command: str, says: str) -> None:
    clean = learn({}, [command], home=HOME)
    assert clean(command) == says
    assert clean("the log says hunter22") == "the log says …"


@pytest.mark.parametrize("command", ["./lexer --tokens 100000", "./lexer --token {kind}", "./a --token=$TOKEN", "make MAX_TOKEN=4096"])
def test_numbers_parameters_and_variables_are_no_secrets(command: str) -> None:
    assert learn({}, [command], home=HOME)(command) == command


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{HOME}/work/a.c", "~/work/a.c"),
        (f"-I{HOME}/include -L/home/bob/lib", "-I~/include -L~/lib"),
        (f"cache {HOME}: full", "cache ~: full"),
        ("/home/bob and /Users/Ann/x and /root", "~ and ~/x and ~"),
        (f"{HOME}2/a.c", f"{HOME}2/a.c"),
        ("src/home/bob/a.c ./root/b.c /rooted/c.c", "src/home/bob/a.c ./root/b.c /rooted/c.c"),
        ("PATH=/home/bob/bin:/usr/bin", "PATH=~/bin:/usr/bin"),
        ("https://jane:pass@host/x.git", "https://…@host/x.git"),
        ("https://token123@host/x.git", "https://…@host/x.git"),
        ("mail a@b.org", "mail a@b.org"),
        ("ghp_abcdefghijklmnopqrstuv0123456789", "…"),
    ],
)
def test_homes_and_credentials_in_any_text(text: str, says: str) -> None:
    assert learn({}, (), home=HOME)(text) == says


@pytest.mark.parametrize("home", ["/", ""])
def test_a_user_without_a_home_of_his_own_loses_no_slashes(home: str) -> None:
    assert learn({}, (), home=home)("/usr/include/a.h") == "/usr/include/a.h"


@given(st.text(max_size=40), st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6, max_size=30), st.text(max_size=40))
def test_no_text_keeps_a_secret(before: str, secret: str, after: str) -> None:
    assert secret not in learn({"MY_SECRET": secret}, (), home=HOME)(f"{before}{secret}{after}").replace("$MY_SECRET", "\0")


@given(st.text(max_size=80))
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    clean = learn({"MY_SECRET": "hunter22"}, (), home=HOME)
    assert clean(clean(text)) == clean(text)
