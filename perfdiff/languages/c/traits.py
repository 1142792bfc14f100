"""What is known of C and C++ without their pack loaded."""

from __future__ import annotations

import re

from perfdiff.languages.traits import Building, Files, Queries, Traits, Wording, parsed

# A statement of SQLite's is prepared, or used once more after it was reset; nothing else sends a prepared one.
# fmt: off
_QUERIES = frozenset((
    "sqlite3_exec", "sqlite3_get_table", "sqlite3_prepare", "sqlite3_prepare_v2", "sqlite3_prepare_v3", "sqlite3_reset",
    "mysql_query", "mysql_real_query", "mysql_send_query", "mysql_stmt_execute", "mysql_stmt_prepare",
    "PQexec", "PQexecParams", "PQexecPrepared", "PQprepare", "PQsendQuery", "PQsendQueryParams", "PQsendQueryPrepared",
    "SQLExecDirect", "SQLExecute", "OCIStmtExecute", "redisCommand", "redisvCommand", "redisCommandArgv", "redisGetReply",
    "memcached_get", "memcached_set", "memcached_mget", "mongoc_collection_find_with_opts", "mongoc_collection_insert_one",
    "ldap_search_ext_s", "curl_easy_perform",
))
# fmt: on

TRAITS = Traits(
    name="c",
    title="C",
    pack="perfdiff.languages.c.pack:made",
    host="perfdiff.languages.c.host:examine",
    frameworks="perfdiff.languages.c.frameworks:FRAMEWORKS",
    wording=Wording(
        statuses=frozenset(("true", "false", "TRUE", "FALSE", "NULL", "nullptr")),
        itself=frozenset(("this",)),
        between=frozenset(("else", "for", "if", "new", "sizeof")),
        sizes=re.compile(r"[/%<>]=?\s*\(*sizeof|sizeof[^;]*[<>]"),
    ),
    queries=Queries(functions=_QUERIES, prepares=r"(?:mysql_stmt_|PQ|PQsend)prepare", requests="curl"),
    files=Files(sources=frozenset((".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp", ".tpp", ".inl"))),
    building=Building(holdings={"units": parsed("parsed sources")}),
)
