"""Functions of libraries that ask another process, a database or a server, and wait for its answer: queries and requests, by name.

Names are those by which counted runs tell calls that leave the project's code, as programmers of each language write them. What is read
of an answer, row by row, is no query.
"""

from __future__ import annotations

import re

# Functions of C's client libraries. A statement of SQLite's is prepared, or used once more after it was reset.
# fmt: off
_C = frozenset((
    "sqlite3_exec", "sqlite3_get_table", "sqlite3_prepare", "sqlite3_prepare_v2", "sqlite3_prepare_v3", "sqlite3_reset",
    "mysql_query", "mysql_real_query", "mysql_send_query", "mysql_stmt_execute", "mysql_stmt_prepare",
    "PQexec", "PQexecParams", "PQexecPrepared", "PQprepare", "PQsendQuery", "PQsendQueryParams", "PQsendQueryPrepared",
    "SQLExecDirect", "SQLExecute", "OCIStmtExecute", "redisCommand", "redisvCommand", "redisCommandArgv", "redisGetReply",
    "memcached_get", "memcached_set", "memcached_mget", "mongoc_collection_find_with_opts", "mongoc_collection_insert_one",
    "ldap_search_ext_s", "curl_easy_perform",
))
# Of PHP: functions, and methods by their classes.
_PHP = frozenset((
    "PDO::query", "PDO::exec", "PDO::prepare", "PDO::beginTransaction", "PDO::commit", "PDO::rollBack", "PDOStatement::execute",
    "mysqli::query", "mysqli::real_query", "mysqli::multi_query", "mysqli::prepare", "mysqli::execute_query", "mysqli_stmt::execute",
    "mysqli_query", "mysqli_real_query", "mysqli_multi_query", "mysqli_prepare", "mysqli_execute_query", "mysqli_stmt_execute",
    "pg_query", "pg_query_params", "pg_execute", "pg_prepare", "SQLite3::query", "SQLite3::querySingle", "SQLite3::exec",
    "SQLite3Stmt::execute", "odbc_exec", "odbc_execute", "oci_execute", "sqlsrv_query", "ldap_search", "curl_exec",
    "SoapClient::__doRequest",
))
# fmt: on
# Of Python and Java: a method of what such libraries call a connection, a cursor or a statement.
_METHODS = re.compile(
    r"(?:^|\.|::)(?:\w*(?:Cursor|Connection|Session|Statement|Transaction|EntityManager|JdbcTemplate))[.:]+"
    r"(?:execute|executemany|executescript|executeQuery|executeUpdate|executeLargeUpdate|executeBatch|query|real_query|request|getresponse)$",
    re.IGNORECASE,
)
_PYTHON = frozenset(("urllib.request.urlopen", "requests.get", "requests.post", "requests.request", "psycopg2.connect"))
# What only prepares a statement, which another of these functions sends. SQLite's have none: a prepared one is stepped through.
_PREPARES = re.compile(r"^(?:PDO::|mysqli::|mysqli_|mysql_stmt_|pg_|PQ|PQsend)prepare$", re.IGNORECASE)
_REQUESTS = re.compile(r"curl|urlopen|request|getresponse|SoapClient", re.IGNORECASE)


def is_query(name: str) -> bool:
    """Return whether a function outside of the project, by its name, asks another process and waits for the answer."""
    return name in _C or name in _PHP or name in _PYTHON or _METHODS.search(name) is not None


def prepares(name: str) -> bool:
    """Return whether a query by its name only prepares what another one executes: both together are one query."""
    return _PREPARES.match(name) is not None


def noun(name: str) -> str:
    """Return what a function sends, in the plural: `queries`, or `requests` of HTTP."""
    return "requests" if _REQUESTS.search(name) else "queries"
