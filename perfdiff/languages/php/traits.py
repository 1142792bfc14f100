"""What is known of PHP without its pack loaded."""

from __future__ import annotations

from dataclasses import dataclass

from perfdiff.languages.traits import Building, Files, Key, KeyKind, Price, Queries, Running, Traits, Wording, parsed


@dataclass(frozen=True, slots=True)
class PhpConfig:
    """`[php]`: the `interpreter` of a project's programs, by name or path; None: `php`, as it is found on PATH."""

    interpreter: str | None = None


# fmt: off
_QUERIES = frozenset((
    "PDO::query", "PDO::exec", "PDO::prepare", "PDO::beginTransaction", "PDO::commit", "PDO::rollBack", "PDOStatement::execute",
    "mysqli::query", "mysqli::real_query", "mysqli::multi_query", "mysqli::prepare", "mysqli::execute_query", "mysqli_stmt::execute",
    "mysqli_query", "mysqli_real_query", "mysqli_multi_query", "mysqli_prepare", "mysqli_execute_query", "mysqli_stmt_execute",
    "pg_query", "pg_query_params", "pg_execute", "pg_prepare", "SQLite3::query", "SQLite3::querySingle", "SQLite3::exec",
    "SQLite3Stmt::execute", "odbc_exec", "odbc_execute", "oci_execute", "sqlsrv_query", "ldap_search", "curl_exec",
    "SoapClient::__doRequest",
))
# fmt: on

TRAITS = Traits(
    name="php",
    title="PHP",
    pack="perfdiff.languages.php.pack:made",
    host="perfdiff.languages.php.host:examine",
    project="perfdiff.languages.php.project:PhpProject",
    frameworks="perfdiff.languages.php.frameworks:FRAMEWORKS",
    settings=PhpConfig,
    keys={"interpreter": Key(KeyKind.TEXT, 'a name or path, such as "php8.2"')},
    unbuilt="each revision runs as it lies",
    files=Files(packaging=frozenset(("composer.json",))),
    wording=Wording(
        statuses=frozenset(("true", "false", "TRUE", "FALSE", "NULL")),
        itself=frozenset(("this",)),
        between=frozenset(("and", "else", "for", "if", "new", "or")),
    ),
    queries=Queries(functions=_QUERIES, prepares="(?:PDO::|mysqli::|mysqli_|pg_)prepare", requests="curl|SoapClient"),
    # An instruction of the engine takes 1.6 ns in a loop that adds numbers, 9 ns in one that makes strings and puts them into an array
    # (8.2, no compiler, a machine with other work), and slower machines take twice as long; it may join strings or copy an array. Where PHP
    # compiles at all, the least of these instructions takes one or two of the processor's.
    prices={"opcodes": Price(usual_ns=10.0, dearest_ns=50.0, work_ns=0.5)},
    building=Building(
        variables=("COMPOSER_VENDOR_DIR",),
        holdings={"scripts": parsed("parsed sources of PHP")},
        packages={"COMPOSER_CACHE_DIR": ".cache/composer"},
    ),
    running=Running(
        variables=("PHPRC", "PHP_INI_SCAN_DIR", "USE_ZEND_ALLOC"),
        absent_file="Could not open input file: ",
        options=r"\b(?:opcache|zend|pcre|xdebug|realpath_cache)[._][\w.]+\]?\s*=\s*\S+|\bpm(?:\.max_children)?\s*=\s*\w+",
    ),
)
