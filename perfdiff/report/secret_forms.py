"""Places where texts and commands give a secret, and which texts in such a place are one.

A pattern starts at a name or word once and never runs over it again, so that a line of a megabyte takes a time in proportion to it: names
are taken as a whole and judged here, and what may stand between two parts of a pattern has a bound.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator

from perfdiff.report.secret_names import BEFORE_VALUE, CONSTANT, ELEMENT, IN_TEXT, OPTION, QUERY, QUERY_OF_LONG, TOKEN_NAME, VARIABLE
from perfdiff.report.secret_tokens import TOKEN

HIDDEN = "…"

_Judge = Callable[[re.Match[str]], bool]

# What is put in place of a secret by a shell, a template or a format.
_PLACE = re.compile(r"[\${<]|%[-#0-9.]*[a-z]|.*(?:\$[{(]|\{\w*\}|%[sdux](?![0-9a-z])|<\w+>)", re.DOTALL)
_NUMBER = re.compile(r"[\d.,]+")
_EXPRESSION = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_]\w*|->\w+|\[.*|\(.*)+")
_KEY_WORDS = (
    r"(?:server|data ?source|host(?:name)?|addr(?:ess)?|database(?:name)?|initial catalog|dbname|uid|user(?: ?id|name)?|driver|dsn"
    r"|provider|port|sslmode|encrypt|trusted_connection|integrated security|endpoint|accountname)"
)
_BEHIND_PAIR = re.compile(
    rf"(?:(?:^|[;\s\"'=,(]){_KEY_WORDS}=(?:[^;()\n]*;|[^\s,;()]+ )|(?:jdbc|odbc):[^\s\"']*;)(?:[\w ]+=[^;()\n]*;)* ?$", re.IGNORECASE
)
_BEFORE_PAIR = re.compile(rf"(?:;[ ;]?| ){_KEY_WORDS}=", re.IGNORECASE)
_NEAR = 300  # characters: a connection string's, before and behind its password


def _is_text(secret: str) -> bool:
    """Return whether a value is one, and no variable, format or number, and is not too short to hide anything."""
    return len(secret) >= (6 if secret.isalpha() else 4) and not _PLACE.match(secret) and not _NUMBER.fullmatch(secret)


def _secret(match: re.Match[str]) -> str:
    return match.string[match.end("before") : match.end()]


def _always(match: re.Match[str]) -> bool:
    return True


def _named(match: re.Match[str]) -> bool:
    """Judge `name = "value"`."""
    name, secret = match["name"], _secret(match)
    if IN_TEXT.search(name):
        return _is_text(secret)
    return bool(TOKEN_NAME.search(name)) and len(secret) >= 12 and bool(re.search(r"\d", secret)) and _is_text(secret)


def _listed(match: re.Match[str]) -> bool:
    """Judge `"name", "value"`, as a call or a list has it: words that are listed are none."""
    return bool(IN_TEXT.search(match["name"])) and not re.fullmatch(r"[A-Za-z_.-]*", _secret(match)) and _is_text(_secret(match))


def _constant(match: re.Match[str]) -> bool:
    """Judge `define('NAME', 'value')` and other calls that set a value by its name."""
    is_secret = IN_TEXT.search(match["name"]) or CONSTANT.search(match["name"])
    return bool(is_secret) and not re.fullmatch(r"\$\{?\w+\}?|\{\w*\}|%s", _secret(match))


def _macro(match: re.Match[str]) -> bool:
    """Judge `#define NAME "value"`: most such names are of words."""
    return bool(IN_TEXT.search(match["name"]) or CONSTANT.search(match["name"])) and not re.fullmatch(r"[A-Za-z_-]*", _secret(match))


def _line(match: re.Match[str]) -> bool:
    """Judge a line `NAME=value` of a file of variables, `name: value` of YAML, or `some.name=value` of properties."""
    name, separator, secret = match["name"], match["separator"], _secret(match)
    if not _is_text(secret) or len(secret) < 6:
        return False
    if separator == "=" and name.isupper() and not match["indent"]:
        return bool(VARIABLE.search(name))
    has_digit = bool(re.search(r"\d", secret))
    if separator.startswith(":"):
        return separator != ":" and has_digit and not re.search(r"[(,;]", secret) and bool(IN_TEXT.search(name))
    if not IN_TEXT.search(name) or re.search(r"[(),;\[\]]", secret) or not has_digit:
        return False
    return separator == "=" or (not _EXPRESSION.fullmatch(secret) and bool(re.search(r"[^\w.\s]", secret)))


def _in_query(match: re.Match[str]) -> bool:
    """Judge `?name=value` of a URL."""
    return bool(QUERY.search(match["name"])) or (len(_secret(match)) >= 8 and bool(QUERY_OF_LONG.search(match["name"])))


def _cookies(match: re.Match[str]) -> bool:
    """Judge the pairs of a header `Cookie`: which of them is a session's nobody knows."""
    return any(len(value) >= 6 and not _PLACE.match(value) for value in re.findall(r"=([^;]*)", _secret(match)))


def _option(match: re.Match[str]) -> bool:
    """Judge `--name value` of a command that a text shows."""
    secret = _secret(match)
    return bool(OPTION.search(match["name"])) and bool(re.search(r"\d", secret)) and secret[0] not in "/~.-" and _is_text(secret)


def _variable(match: re.Match[str]) -> bool:
    """Judge `NAME=value` before or in a command that a text shows; most of a source are members of an enumeration."""
    secret = _secret(match)
    if not VARIABLE.search(match["name"]) or not re.search(r"\d", secret) or re.search(r"[(),;\[\]]", secret):
        return False
    is_sum = re.fullmatch(r"(?:[A-Z_]+\d{0,2}|0x[\da-fA-F]+|\d+)(?:[-+|<]+\w+)*", secret)
    return not is_sum and secret[0] not in "/~." and len(secret) >= 6 and _is_text(secret)


def _connection(match: re.Match[str]) -> bool:
    """Judge `Password=value` among the pairs of a connection string, or closed by a semicolon and unlike a statement."""
    text, secret = match.string, _secret(match)
    if re.fullmatch(r"[\"']?(?:\$\{?[\w.]+\}?|\{\w*\}|<\w+>|%s|\*+|)[\"']?", secret) or _EXPRESSION.fullmatch(secret):
        return False
    line = text[max(0, match.start() - _NEAR) : match.start()].rpartition("\n")[2]
    if _BEHIND_PAIR.search(line) or _BEFORE_PAIR.match(text, match.end(), match.end() + _NEAR):
        return True
    is_path = secret[0] in "/~."
    return match["before"][0].isupper() and text[match.end() : match.end() + 1] == ";" and not is_path and _is_text(secret)


def _element(match: re.Match[str]) -> bool:
    """Judge `<name>value</name>`."""
    secret = _secret(match).strip()
    if re.fullmatch(r"(?:\$|\{|%\w|@\w+@).*", secret) or not ELEMENT.search(match["name"]):
        return False
    return not TOKEN_NAME.search(match["name"]) or (len(secret) >= 12 and bool(re.search(r"\d", secret)))


def _attributes(match: re.Match[str]) -> bool:
    """Judge `name="password" value="…"`: words that are shown to people are none."""
    return (
        bool(IN_TEXT.search(match["name"])) and not re.fullmatch(r"[A-Za-z_-]*|.*\s.*", _secret(match)) and not _PLACE.match(_secret(match))
    )


def _to_database(match: re.Match[str]) -> bool:
    """Judge `-pvalue`: of the clients of a database, where that is no port."""
    before = re.split(r"[|;&\n]", match.string[max(0, match.start() - _NEAR) : match.start()])[-1]
    return bool(re.search(r"\b(?:mysql|mariadb)", before)) and len(_secret(match)) >= 6 and not _PLACE.match(_secret(match))


def _to_server(match: re.Match[str]) -> bool:
    """Judge `-u user:value`: of clients of HTTP, where that is no group."""
    before = re.split(r"[|;&\n]", match.string[max(0, match.start() - _NEAR) : match.start()])[-1]
    return bool(re.search(r"\b(?:curl|wget|https?)\s", before)) and not _PLACE.match(_secret(match))


def _web_token(match: re.Match[str]) -> bool:
    header, *rest = _secret(match).split(".")
    return len(header) >= 13 and len(rest) >= 2


def _basic(match: re.Match[str]) -> bool:
    return ":" in _from_base64(_secret(match))


_VALUE = r"[\w=~@.+/-]"
_QUOTE = r"(?P<quote>[\"']|&(?:quot|apos|#0*3[49]|#x2[27]);)"
_INNER = r"(?:[\"']|&(?:quot|apos|amp|lt|gt|#\d{1,4}|#x[0-9a-fA-F]{1,4});)(?=\w)"  # a quote that does not end a value
_SET = r"(?:=>?|:=?)"
_MARK = r"(?:\\{0,31}[\"']|&quot;)?"  # a quote around a name or value, or none
_PAIR = r"[\w.-]{1,100}+=(?:\"[^\s;\"]*+\"|[^\s;'\"\\]*+)"  # of cookies
# A text in quotes, without white space, as messages have that; within a text, quotes have
# as many backslashes at both ends of the value, and those in it one more than twice as many.
_QUOTED = (
    rf"(?:{_QUOTE}(?=(?P<plain>(?:\\[^\n]|(?P=quote){{2}}(?!\s|$)|(?!(?P=quote))[^\s\\])++)(?P=quote))"
    rf"|(?P<level>\\{{1,31}}+)(?P<within>[\"'])(?=(?P<escaped>(?:(?P=level){{2}}\\(?:\\|(?P=within))|\\++(?!(?P=within))"
    rf"|(?!(?P=within))[^\s\\])++)(?P=level)(?P=within)))"
)
_TAKEN = r"(?:(?P=plain)|(?P=escaped))"
_BETWEEN = r"(?:\\+[nrt]|&#1[03];|%0[AD]|[\s\"'\\+,-])"  # lines of a key, as C, JSON, shells, HTML, URLs and patches have them
_HEADS = r"(?:[A-Z][\w-]{2,30}+: [^\n\\]{0,200}+)"  # a key that is encrypted
_LETTER = r"(?:[A-Za-z0-9+/=]|%2[BF]|%3D|\\/)"
_BODY = rf"(?:{_BETWEEN}*+{_HEADS})*+(?:{_BETWEEN}*+{_LETTER}{{16,}}+)++(?:{_BETWEEN}*+{_LETTER}++(?={_BETWEEN}*+END))?"
# What stands before the secret stays.
_PLACES: tuple[tuple[re.Pattern[str], _Judge], ...] = tuple(
    (re.compile(pattern), judge)
    for pattern, judge in (
        (rf"(?P<before>-----BEGIN(?: |%20|\+)[A-Z0-9 %+]{{0,60}}PRIVATE(?: |%20|\+)KEY(?:(?: |%20|\+)BLOCK)?-----){_BODY}", _always),
        (r"(?P<before>jdbc:oracle:\w{1,20}:[\w.-]{1,100}/)[^\s@\"'/]+(?=@)", _always),
        (r"(?P<before>(?<=://))[^\s/?#'\"]+(?=@)", _always),  # user, or user and password, of a URL
        (r"(?P<before>(?:[?&]|&amp;)(?P<name>[\w.-]{1,80}+)=)[^&\s'\"#${%<;]{3,}", _in_query),
        (
            rf"(?P<before>\b(?i:(?:proxy-)?authorization{_MARK}\s{{0,9}}[:=]\s{{0,9}}{_MARK}(?:basic|bearer|digest|token|apikey|negotiate))"
            rf"\s{{1,9}}){_VALUE}{{6,}}",
            _always,
        ),
        (rf"(?P<before>\b(?i:(?:proxy-)?authorization){_MARK}\s{{0,9}}[:=]\s{{0,9}}{_MARK})(?![\w.]{{1,200}}\(){_VALUE}{{16,}}", _always),
        (rf"(?P<before>\b(?i:bearer)\s{{1,9}})(?=[^\s\d]{{0,200}}\d){_VALUE}{{8,}}", _always),
        (r"(?P<before>\b[Bb]asic\s{1,9})(?=[^\s\d]{0,200}\d)[A-Za-z0-9+/]{16,}={0,2}", _always),
        (
            rf"(?P<before>(?<![\w-])(?i:x-[a-z-]{{0,40}}|private-|job-|deploy-)(?i:(?<=[a-z-])(?:key|token|secret|auth))\s{{0,9}}:\s{{0,9}})"
            rf"(?:{_VALUE}|{_INNER}){{6,}}",
            _always,
        ),
        (rf"(?P<before>\b(?i:set-cookie){_MARK}\s{{0,9}}:\s{{0,9}}{_MARK}[\w.-]{{1,100}}=)[^\s;'\"\\]{{6,}}", _always),
        (rf"(?P<before>(?<![\w-])(?i:cookie){_MARK}\s{{0,9}}:\s{{0,9}}{_MARK}){_PAIR}(?:; ?{_PAIR})*+", _cookies),
        (
            rf"(?P<before>(?<![\w.-]){BEFORE_VALUE}(?P<name>[\w.-]++)(?:\\*[\"']|&quot;)?\]?\s{{0,20}}"
            rf"{_SET}\s{{0,20}}{_QUOTED}){_TAKEN}",
            _named,
        ),
        (
            r"(?P<before>(?i:\b(?:define|constant|putenv|setenv|getenv|set_?property|set_?option)\b)[\s(]{1,9}[\"']?"
            r"(?P<name>\w++)[\"']?\s{0,9},\s{0,9}(?P<quote>[\"']))(?:\\[^\n]|(?!(?P=quote))[^\\\n])++(?=(?P=quote))",
            _constant,
        ),
        (rf"(?P<before>[\"'](?P<name>[\w.-]++)[\"']\s{{0,9}},\s{{0,9}}{_QUOTED}){_TAKEN}", _listed),
        (r"(?P<before>#\s{0,9}define\s{1,9}(?P<name>\w++)\s{1,40}\")(?:\\[^\n]|[^\"\\\s])++(?=\")", _macro),
        (
            r"(?P<before>(?<![\w-])(?i:password|passwd|pwd|(?:shared)?accesskey|sharedsecret(?:value)?)=)"
            rf"(?:\{{(?:[^}}\n]|\}}\}}){{0,200}}+\}}|\"[^\"\n]+\"(?=[;\s'])|'[^'\n]+'(?=[;\s\"])|(?:\\[^\s]|{_INNER}|[^;\s\"'\\<>&])"
            rf"(?:\\[^\s]|{_INNER}|(?!&\w+;)[^;\s\"'\\<>])*+)",
            _connection,
        ),
        (r"(?P<before>\b(?:Account|SharedAccess)Key=)[A-Za-z0-9+/]{20,}={0,2}", _always),  # of Azure
        (
            r"(?P<before>(?:<|&lt;)(?P<name>[\w:.-]{1,80}+)(?:[ \t][^<>\n]{0,200})?(?:>|&gt;)\s{0,40}(?:(?:<|&lt;)!\[CDATA\[)?)"
            r"(?!\s)(?:(?!&lt;)[^<>\n\]]){1,500}(?<!\s)(?=\s{0,40}(?:\]\](?:>|&gt;))?(?:<|&lt;)/)",
            _element,
        ),
        (
            r"(?P<before><\w{1,40}[ \t][^<>\n]{0,200}?\b(?i:name|key|id)=[\"'](?P<name>[\w:.-]{1,80}+)[\"'][^<>\n]{0,100}?"
            r"(?:\bvalue=(?P<quote>[\"'])|>))(?(quote)(?!(?P=quote)))[^<>\n]{1,500}?(?=(?(quote)(?P=quote)|</))",
            _attributes,
        ),
        (
            r"(?m:^)(?P<before>(?P<indent>[+-]?[ \t]*+(?:- )?)(?:export )?(?P<name>(?![-.])[\w.-]++)(?P<separator>=| = |:[ \t]{1,40}))"
            r"[^\s\"']++(?=[ \t]{0,40}\r?(?m:$))",
            _line,
        ),
        (r"(?m:^)(?P<before>(?P<indent>[+-]?)(?:export )?(?P<name>[A-Z0-9_]++)(?P<separator>=))[^\s'\"]++", _line),
        (r"(?P<before>(?<![\w-])--(?P<name>\w[\w-]*+)[= ][\"']?)[^\s\"'\\`<>]++", _option),
        (r"(?P<before>(?<=[\s\"'])(?P<name>[A-Z0-9_]++)=)[^\s\"'\\`<>]++", _variable),
        (r"(?P<before>\b(?:aws_secret_access_key|_authToken|_password)\s{0,9}=\s{0,9})[^\s'\"${%<]{6,}", _always),
        (r"(?P<before>(?:\b_auth\s{0,9}=\s{0,9}|[\"']auth[\"']:\s{0,9}[\"']))[A-Za-z0-9+/]{8,}={0,2}", _basic),  # .npmrc, Docker
        (r"(?P<before>\blogin\s{1,9}\S{1,200}+\s{1,40}password\s{1,9})[^\s'\"${%<]+", _always),  # .netrc
        (r"(?P<before>(?<=\s)-p)[^\s'\"]++", _to_database),
        (r"(?P<before>(?<=\s)(?:-u\s{0,9}|--(?:proxy-)?user[= ])[\"']?[^\s:'\"]{1,100}+:)[^\s'\"`]{4,}+", _to_server),
        (r"(?P<before>(?:\b|(?<=\\[nrt])|(?<=%[0-9A-F]{2})))eyJ[\w-]++(?:\.[\w-]++)*+", _web_token),
    )
)
# The end of a key whose beginning was cut away, read backwards.
_KEY_END = re.compile(r"-----END(?: |%20|\+)[A-Z0-9 %+]{0,60}PRIVATE(?: |%20|\+)KEY")
_BETWEEN_BACKWARDS = r"(?:[nrt]\\+|;[03]1#&|[AD]0%|[\s\"'\\+,-])"
_LETTER_BACKWARDS = r"(?:[BF]2%|D3%|/\\|[A-Za-z0-9+/=])"
_BODY_BACKWARDS = re.compile(
    rf"{_BETWEEN_BACKWARDS}*+(?P<key>{_LETTER_BACKWARDS}++(?:{_BETWEEN_BACKWARDS}++{_LETTER_BACKWARDS}{{16,}}+)*+)"
)
_LONGEST_KEY = 20_000


def without_known(text: str) -> str:
    """Return the text with `…` in place of each secret that stands in a known form; what is clean stays as it is."""
    for start, end in reversed(list(_key_ends(text))):
        text = f"{text[:start]}{HIDDEN}{text[end:]}"
    for pattern, judge in _PLACES:
        text = pattern.sub(lambda match, judge=judge: f"{match['before']}{HIDDEN}" if judge(match) else match[0], text)  # type: ignore[misc]
    return TOKEN.sub(HIDDEN, text)


def in_text(text: str) -> Iterator[str]:
    """Yield the secrets that stand in known forms in a text, and what these hold: a password beside its user, encoded or not."""
    for start, end in _key_ends(text):
        yield text[start:end]
    for pattern, judge in _PLACES:
        for match in pattern.finditer(text):
            if judge(match):
                yield from _parts(_secret(match))
    for match in TOKEN.finditer(text):
        yield match[0]


def _key_ends(text: str) -> Iterator[tuple[int, int]]:
    for marker in _KEY_END.finditer(text):
        before = text[max(0, marker.start() - _LONGEST_KEY) : marker.start()]
        match = _BODY_BACKWARDS.match(before[::-1])
        if match and len(match["key"]) >= 16 and "BEGIN" not in before[-match.end() - 60 :]:
            yield marker.start() - match.end("key"), marker.start() - match.start("key")


def _parts(secret: str) -> Iterator[str]:
    yield secret
    if re.match(rf"{_PAIR};", secret):
        yield from re.findall(r"=([^\s;]+)", secret)
    if (secret[0] == secret[-1] and secret[0] in "\"'") or (secret[0], secret[-1]) == ("{", "}"):
        yield secret[1:-1]
    for given in (secret, _from_base64(secret)):
        user, colon, password = given.partition(":")
        if colon and user and password:
            yield password


def _from_base64(text: str) -> str:
    """Return the text that is encoded, "" where none is."""
    try:
        plain = base64.b64decode(text, validate=True).decode()
    except ValueError:
        return ""
    return plain if plain.isprintable() else ""
