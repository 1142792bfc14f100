"""Names of what holds a secret: one list of words, of which each place takes those that mean nothing else there."""

from __future__ import annotations

import re

# What ends in one of these holds a secret wherever it stands.
_WORD = r"(?:passw(?:or)?d|passphrase|secret|(?:api|access|secret|private|auth)[_-]?key|(?:auth|access|refresh|bearer)[_-]?token)"
# In a text, most of these are anything else: a lexer's token, the credentials that a request is sent with.
_LOOSE = r"(?:token|credentials?)"
_SHORT = r"(?:pass|pwd|pw|psk)"  # which longer words end in as well
_IN_CAPITALS = r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(?:API|AUTH|ACCESS|PRIVATE)_?KEY|_(?:PAT|PWD|PASS|PW|PSK)$"
_OF_TEXT = rf"(?:{_WORD}|(?<=[_.-]){_SHORT}|(?<=Account)Key)"

IN_TEXT = re.compile(rf"{_OF_TEXT}$", re.IGNORECASE)
BEFORE_VALUE = rf"(?=(?i:[\w.-]*(?:{_OF_TEXT}|token))(?![\w.-]))"  # at the beginning of such a name
TOKEN_NAME = re.compile(r"token$", re.IGNORECASE)
ELEMENT = re.compile(rf"(?:{_WORD}|token|(?:^|[a-z0-9_:.-])pwd)$", re.IGNORECASE)
OPTION = re.compile(rf"(?:{_WORD}|{_LOOSE})$|(?:^|[-_]){_SHORT}$", re.IGNORECASE)
FIELD = re.compile(rf"(?:^|_)(?:{_WORD}|{_LOOSE}|{_SHORT})$", re.IGNORECASE)
QUERY = re.compile(rf"(?:{_WORD}|(?:^|[_.-])pwd)$", re.IGNORECASE)
QUERY_OF_LONG = re.compile(r"(?:^(?:key|sig(?:nature)?|X-Amz-(?:Signature|Credential))|token)$", re.IGNORECASE)
# Variables in capitals, as commands and files set them; constants of WordPress and the like; and all that an environment has, of which
# `GIT_AUTHOR_NAME` and its like are none.
VARIABLE = re.compile(_IN_CAPITALS)
CONSTANT = re.compile(r"(?:PASS|PWD|TOKEN|_KEY|_SALT|SECRET|DSN)$")
ENVIRONMENT = re.compile(rf"{_IN_CAPITALS}|AUTH(?!OR)|COOKIE|PRIVATE|_KEY$|_KEY_ID$|_DSN$", re.IGNORECASE)
