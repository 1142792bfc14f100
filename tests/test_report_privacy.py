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
    assert learn({"RELEASE_KEY": commit}, (), home=HOME, public=[commit])(commit) == commit


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("./bench --password hunter22 {n}", "./bench --password … {n}"),
        ("./bench --api-key=hunter22", "./bench --api-key=…"),
        ("DB_PASSWORD='hunter22' ./bench", "DB_PASSWORD='…' ./bench"),
        ("make TOKEN=hunter22", "make TOKEN=…"),
        ("./bench --password 'hunter22' -v", "./bench --password '…' -v"),
        ("./bench --pass=hunter22", "./bench --pass=…"),
        ("./load password=hunter22 host=db", "./load password=… host=db"),
        ("mysql -h db -u root -phunter22 bench", "mysql -h db -u root -p… bench"),
        ("mysql -u root --password=hunter22 bench", "mysql -u root --password=… bench"),
        ("mysql -u root --password hunter22 bench", "mysql -u root --password … bench"),
        ('make CFLAGS=-DPASSWORD=\\"hunter22\\"', 'make CFLAGS=-DPASSWORD=\\"…\\"'),
        ("mysqldump -phunter22 bench | ./load", "mysqldump -p… bench | ./load"),
        ("sshpass -p hunter22 ssh host", "sshpass -p … ssh host"),
        ("MYSQL_PWD=hunter22 mysql", "MYSQL_PWD=… mysql"),
        ("REDIS_PASS=hunter22 ./bench", "REDIS_PASS=… ./bench"),
        ("./bench --pw=hunter22", "./bench --pw=…"),
        ("./bench --psk hunter22", "./bench --psk …"),
        ("openssl rsa -passin pass:hunter22", "openssl rsa -passin pass:…"),
        ("""./bench '{"token": "hunter22", "n": 3}'""", """./bench '{"token": "…", "n": 3}'"""),
        ("echo 'db_password: hunter22' > c.yaml", "echo 'db_password: …' > c.yaml"),
        ("redis-cli -h db -a hunter22 ping", "redis-cli -h db -a … ping"),
        ("curl -u jane:hunter22 https://a.org", "curl -u jane:… https://a.org"),
        ("rsync jane:hunter22@files.org:/x .", "rsync jane:…@files.org:/x ."),
        ("./bench 'Server=db;Password=hunter22' --pwd hunter22", "./bench 'Server=db;Password=…' --pwd …"),
    ],
)
def test_what_a_command_gives_as_a_secret_is_hidden_everywhere(command: str, says: str) -> None:
    clean = learn({}, [command], home=HOME)
    assert clean(command) == says
    assert clean("the log says hunter22") == "the log says …"


def test_a_password_with_a_backslash_is_hidden() -> None:
    assert learn({}, ("make TOKEN=hun\\ter22",), home=HOME)("make TOKEN=hun\\ter22") == "make TOKEN=…"


def test_a_long_random_key_of_a_command_is_hidden() -> None:
    assert learn({}, ["./bench --key=0a1B2c3D4e5F6g7H"], home=HOME)("run with 0a1B2c3D4e5F6g7H") == "run with …"
    longer = "0a1B2c3D4e5F6g7H" * 2
    assert learn({}, [f"MY_KEY={longer} ./bench"], home=HOME)(f"run with {longer}") == "run with …"
    assert learn({}, [f"./bench --account-key {longer}"], home=HOME)(f"run with {longer}") == "run with …"


@pytest.mark.parametrize(
    "command",
    [
        "./lexer --tokens 100000",
        "./lexer --token {kind}",
        "./a --token=$TOKEN",
        "make MAX_TOKEN=4096",
        "./sort --key=surname --reverse",
        "./map key=insertion n=1000",
        "./server -p8080 -pthread",
        "gcc -pthread -passthrough main.c",
        "./compass north-east",
        "docker run image:1.2@sha256:abcdef",
        "./bench 10:30@noon",
        "./bench --bypass=cache11 --compass=north12345 --surpass value12345",
        "./bench --by-passes=3 trespass: n0ne",
    ],
)
def test_numbers_parameters_and_variables_are_no_secrets(command: str) -> None:
    assert learn({}, [command], home=HOME)(command) == command


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{HOME}/project/a.c", "~/project/a.c"),
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
        ("postgres://jane:p@ss:word@db:5432/x", "postgres://…@db:5432/x"),
        ("see https://a.org/x?mail=a@b.org", "see https://a.org/x?mail=a@b.org"),
        ("GET /x?n=3&access_token=hunter22hunter22&m=1", "GET /x?n=3&access_token=…&m=1"),
        ("curl -H 'Authorization: Bearer hunter22'", "curl -H 'Authorization: Bearer …'"),
        ("AUTH='Bearer hunter22' ./words", "AUTH='Bearer …' ./words"),
        ("Authorization: Basic amFuZTpodW50ZXIyMg==", "Authorization: Basic …"),
        ('{"authorization": "Bearer hunter22"}', '{"authorization": "Bearer …"}'),
        ("X-Api-Key: hunter22 sent", "X-Api-Key: … sent"),
        ("PRIVATE-TOKEN: hunter22", "PRIVATE-TOKEN: …"),
        ("Set-Cookie: session=hunter22; Path=/", "Set-Cookie: session=…; Path=/"),
        ('{"db_password": "hunter22"}', '{"db_password": "…"}'),
        ("client_secret = 'hunter22'", "client_secret = '…'"),
        ('mysql_pwd = "hunter22";', 'mysql_pwd = "…";'),
        ('conf = "{\\"password\\": \\"hunter22\\"}";', 'conf = "{\\"password\\": \\"…\\"}";'),
        ("AccountName=a;AccountKey=" + "aB3/" * 22 + "==;EndpointSuffix=x", "AccountName=a;AccountKey=…;EndpointSuffix=x"),
        ("+REDIS_PASS=hunter22\n+PORT=80", "+REDIS_PASS=…\n+PORT=80"),
        ('{"token": "hunter22hunter22"}', '{"token": "…"}'),
        ("+  password: hunter22\n+  port: 80", "+  password: …\n+  port: 80"),
        ("+mysql -u root -phunter22 bench", "+mysql -u root -p… bench"),
        ("curl -H 'Basic amFuZTpodW50ZXIyMg=='", "curl -H 'Basic …'"),
        ("+DB_PASSWORD=hunter22\n+PORT=80", "+DB_PASSWORD=…\n+PORT=80"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPx", "aws_secret_access_key = …"),
        ("//registry/:_authToken=hunter22", "//registry/:_authToken=…"),
        ("machine a.org login jane password pw", "machine a.org login jane password …"),
        ("key AKIAIOSFODNN7EXAMPLE.", "key …."),
        ("AIza" + "Ab3_-" * 7, "…"),
        ("sk_" + "live_" + "a1B2c3D4e5F6", "…"),
        ("xox" + "b-123456789012-abcdef", "…"),
        ("hvs." + "a1B2c3D4" * 4, "…"),
        ("glrt-" + "a1B2c3D4" * 3, "…"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "…"),
        (
            "+-----BEGIN RSA PRIVATE KEY-----\n+Proc-Type: 4,ENCRYPTED\n+\n+MIIEpAIBAAKCAQEA7\n+abcd==\n+-----END RSA PRIVATE KEY-----\n+x",
            "+-----BEGIN RSA PRIVATE KEY-----…\n+-----END RSA PRIVATE KEY-----\n+x",
        ),
    ],
)
def test_homes_and_credentials_in_any_text(text: str, says: str) -> None:
    assert learn({}, (), home=HOME)(text) == says


@pytest.mark.parametrize(
    "text",
    [
        "static const char *token = next_token(lexer);",
        'if (!strcmp(option, "--password")) password = argv[++i];',
        'printf("password: %s\\n", password);',
        'const char *secret = "";',
        "#define API_KEY_LENGTH 32",
        "    BAD_TOKEN=TOKEN_LAST,",
        'strncmp(line, "-----BEGIN PRIVATE KEY-----", 27)',
        "a header such as Authorization: Bearer TOKEN",
        "Bearer authentication of every request",
        "commit a1b2c3d4e5f60718293a4b5c6d7e8f9001122334, blake2b 9f86d081884c7d659a2feaa0c55ad015",
        "_ZNSt8_Rb_treeIiSt4pairIKiiESt10_Select1stIS2_ESt4lessIiESaIS2_EE",
        "git@github.com:jane/x.git",
        "task-sk-1 and desk-organisation-of-the-whole-house",
        "password: str | None",
        'cwd = getcwd(buffer); pwd = "/srv/data";',
        "    if (BY_PASS=1)",
        '{"token": "IDENTIFIER", "kind": 7}',
        "basic blocks and basic authentication",
        "mysql -P 3306 -u root",
    ],
)
def test_sources_messages_and_digests_stay_as_they_are(text: str) -> None:
    assert learn({}, (), home=HOME)(text) == text


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
