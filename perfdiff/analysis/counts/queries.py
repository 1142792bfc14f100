"""Functions of libraries that ask another process, a database or a server, and wait for its answer: queries and requests, by name.

Names are those by which counted runs tell calls that leave the project's code, as programmers of each language write them; the languages
say which they are. What is read of an answer, row by row, is no query.
"""

from __future__ import annotations

import re

from perfdiff.languages.installed import installed

_QUERIES = tuple(traits.queries for traits in installed())
_FUNCTIONS = frozenset(name for queries in _QUERIES for name in queries.functions)
# A method of what libraries call a connection, a cursor or a statement.
_OWNERS = "|".join(owner for queries in _QUERIES for owner in queries.owners)
_NAMES = "|".join(method for queries in _QUERIES for method in queries.methods)
_METHODS = re.compile(rf"(?:^|\.|::)(?:\w*(?:{_OWNERS}))[.:]+(?:{_NAMES})$", re.IGNORECASE)
# What only prepares a statement, which another of these functions sends.
_PREPARES = re.compile("|".join(queries.prepares for queries in _QUERIES if queries.prepares), re.IGNORECASE)
_REQUESTS = re.compile("|".join(queries.requests for queries in _QUERIES if queries.requests), re.IGNORECASE)


def is_query(name: str) -> bool:
    """Return whether a function outside of the project, by its name, asks another process and waits for the answer."""
    return name in _FUNCTIONS or _METHODS.search(name) is not None


def prepares(name: str) -> bool:
    """Return whether a query by its name only prepares what another one executes: both together are one query."""
    return _PREPARES.fullmatch(name) is not None


def noun(name: str) -> str:
    """Return the plural noun for what a function sends: `queries`, or `requests` for HTTP."""
    return "requests" if _REQUESTS.search(name) else "queries"
