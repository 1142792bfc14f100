"""Forms in which secrets are written: tokens that their issuers made to be recognised, and the places where texts and commands give one.

The issuers' prefixes are facts that each of them documents; which issuers to know was held against the rules of gitleaks
(github.com/gitleaks/gitleaks, config/gitleaks.toml of July 2026, MIT), the maintained list. `detect-secrets`, the library for Python, had
its last release in May 2024, and asks the network whether a secret works.

There is no search for text that looks drawn at random: commits, digests, test data and mangled names do, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

HIDDEN = "…"

# Behind its prefix each token has at least so many letters of its alphabet; shorter ones are words of a program.
TOKEN = re.compile(
    r"""\b(?:
      A3-[A-Z0-9]{6}-[A-Z0-9-]{20,} | ops_eyJ[\w+/]{20,}                                # 1Password
    | AGE-SECRET-KEY-1[A-Z0-9]{50,}                                                     # age
    | (?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b | ABSK[\w+/]{100,}              # AWS
    | LTAI[A-Za-z0-9]{16,}                                                              # Alibaba Cloud
    | AKCp[A-Za-z0-9]{60,} | cmVmd[A-Za-z0-9]{59}                                       # Artifactory
    | ATATT3[\w=-]{40,}                                                                 # Atlassian
    | [\w~.]{3}\dQ~[\w~.-]{31,34}                                                       # Azure
    | dapi[a-f0-9]{32}                                                                  # Databricks
    | do[opr]_v1_[a-f0-9]{40,}                                                          # DigitalOcean
    | dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}                                       # Doppler
    | dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{40,}                                         # Dynatrace
    | fo1_[\w-]{40,} | fm[12][ar]?_[\w+/=]{60,}                                         # Fly.io
    | AIza[\w-]{35} | ya29\.[\w-]{20,} | GOCSPX-[\w-]{20,}                              # Google
    | gh[pousr]_\w{20,} | github_pat_\w{20,}                                            # GitHub
    | gl(?:pat|cbt|dt|ffct|ft|imt|agent|oas|ptt|rt|soat)-[\w.-]{15,} | GR1348941[\w-]{20,}   # GitLab
    | gl(?:c|sa)_[\w+/=]{30,}                                                           # Grafana
    | HRKU-[\w-]{40,}                                                                   # Heroku
    | hv[bsr]\.[\w-]{20,} | [A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}                       # HashiCorp
    | hf_[A-Za-z]{30,} | api_org_[A-Za-z]{30,}                                          # Hugging Face
    | eyJ[\w-]{10,}\.[\w-]+\.[\w-]+                                                     # JSON web tokens
    | lin_api_[A-Za-z0-9]{30,}                                                          # Linear
    | npm_[A-Za-z0-9]{30,}                                                              # npm
    | ntn_[A-Za-z0-9]{40,}                                                              # Notion
    | sk-[\w-]{20,} | pplx-[A-Za-z0-9]{40,} | gsk_[A-Za-z0-9]{40,}                      # OpenAI, Anthropic, Perplexity, Groq
    | sha256~[\w-]{43}                                                                  # OpenShift
    | pscale_(?:tkn|oauth|pw)_[\w=.-]{30,}                                              # PlanetScale
    | PMAK-[a-f0-9]{24}-[a-f0-9]{30,}                                                   # Postman
    | pul-[a-f0-9]{40}                                                                  # Pulumi
    | pypi-[\w-]{50,} | rubygems_[a-f0-9]{40,} | dckr_pat_[\w-]{20,}                    # package registries
    | SG\.[\w=-]{16,}\.[\w=-]{30,} | xkeysib-[a-f0-9]{40,}                              # SendGrid, Brevo
    | sntry[su]_[\w+/=]{30,}                                                            # Sentry
    | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}                                                # Shopify
    | xox[abeprso](?:\.xox[bp])?-[\w-]{10,} | xapp-\d-[\w-]{20,} | hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+]{20,}   # Slack
    | sgp_[\w]{40,}                                                                     # Sourcegraph
    | EAAA[\w-]{50,} | sq0(?:atp|csp)-[\w-]{20,}                                        # Square
    | [sr]k_(?:test|live|prod)_[A-Za-z0-9]{10,} | whsec_[\w+/=]{20,}                    # Stripe
    | SK[0-9a-f]{32}\b                                                                  # Twilio
    | tskey-[\w-]{20,}                                                                  # Tailscale
    )""",
    re.VERBOSE,
)

_NAME = (
    r"(?:passw(?:or)?d|passphrase|(?:client_?)?secret(?:_?(?:access_?)?key)?|(?:api|access|private)_?key"
    r"|(?:auth|access|refresh|bearer)_?token|(?<=_)(?:pwd|pass)|(?<=Shared)AccessKey|(?<=Account)Key)"
)
_VALUE = r"[\w=~@.+/-]"
# What stands before the secret stays. A variable's, parameter's or format's place ($, {, %, <) is no secret.
_PLACES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<before>(?<=://))[^\s/?#'\"]+(?=@)",  # user, or user and password, of a URL
        r"(?P<before>[?&](?i:key|api_?key|\w*token|sig(?:nature)?|secret|passw(?:or)?d|X-Amz-(?:Signature|Credential))=)[^&\s'\"#${%<]{8,}",
        rf"(?P<before>\b(?i:(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|digest|token|apikey|negotiate))\s+){_VALUE}{{6,}}",
        rf"(?P<before>\b(?i:(?:proxy-)?authorization)[\"']?\s*[:=]\s*[\"']?){_VALUE}{{16,}}",
        rf"(?P<before>\b(?i:bearer)\s+)(?=[^\s\d]*\d){_VALUE}{{8,}}",
        r"(?P<before>\b[Bb]asic\s+)(?=[^\s\d]*\d)[A-Za-z0-9+/]{16,}={0,2}",
        rf"(?P<before>\b(?i:(?:x-[a-z-]*|private-|job-|deploy-)(?:key|token|secret|auth))\s*:\s*){_VALUE}{{6,}}",
        r"(?P<before>\b(?i:(?:set-)?cookie)\s*:\s*[\w.-]+=)[^\s;'\"]{6,}",
        # An assignment of a text: `"password": "…"`, `api_key = '…'`, `secret => "…"`.
        # A text within one has `\"` for its quotes.
        rf"(?P<before>(?i:\b\w*{_NAME})\\?[\"']?\s*(?::|=>?|:=)\s*\\?[\"'])[^\s\"'${{%<\\]{{6,}}(?=\\?[\"'])",
        r"(?P<before>(?i:\b\w*token)\\?[\"']?\s*(?::|=>?|:=)\s*\\?[\"'])(?=[^\s\"']*\d)[^\s\"'${%<\\]{12,}(?=\\?[\"'])",
        r"(?P<before>\b(?:Account|SharedAccess)Key=)[A-Za-z0-9+/]{20,}={0,2}",  # of Azure's connection strings
        # A line of YAML, whose texts need no quotes.
        rf"(?m:^)(?P<before>[+-]?[ \t-]*(?i:[\w-]*{_NAME}):[ \t]+)(?=\S*\d)[^\s\"'${{%<(,;]{{6,}}(?=[ \t]*(?m:$))",
        # A line of a file of variables, as patches hold them; of upper-case names, as C's own assignments are indented and in lower case.
        r"(?m:^)(?P<before>[+-]?(?:export )?"
        r"(?:[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY)[A-Z0-9_]*|[A-Z0-9_]+_(?:PWD|PASS))=)"
        r"(?![\d.,]+$)[^\s'\"${%<]{6,}",
        r"(?P<before>\b(?:aws_secret_access_key|_authToken|_password)\s*=\s*)[^\s'\"${%<]{6,}",
        r"(?P<before>\blogin\s+\S+\s+password\s+)[^\s'\"${%<]+",  # .netrc
        r"(?P<before>\b(?:mysql|mariadb)[\w-]*\s(?:[^|;&\n]*?\s)?-p)[^\s'\"${%<]{6,}",
        r"(?P<before>-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)(?:[\s+-]*[A-Z][\w-]+: [^\n]*)*(?:[\s\"'\\+-]*[A-Za-z0-9+/=]{16,})+"
        r"(?:[\s\"'\\+-]*[A-Za-z0-9+/=]+(?=[\s\"'\\]*[+-]?-----END))?",
    )
)

_NO_SECRET = r"(?!\$|\{|[\d.,]+(?:[\s'\"]|$))"
_GIVEN = rf"""(?:'{_NO_SECRET}([^']+)'|"{_NO_SECRET}([^"]+)"|\\["']{_NO_SECRET}([^"'\\]+)|{_NO_SECRET}((?:[^\s'"\\]|\\(?!["']))+))"""
_SECRET_WORD = r"(?i:password|passwd|passphrase|secret|token|(?:api|access|secret|private|auth)[-_]?key|credentials?)"
_SHORT_WORD = r"(?i:pass|pwd|pw|psk)"  # which longer words end in as well
_SECRET_FIELD = rf"(?<![\w-])(?:\w*_)?(?:{_SECRET_WORD}|{_SHORT_WORD})"
# What only a command means so: options and variables. Not a bare -p, which is a port or a number of processes elsewhere.
_COMMAND = tuple(
    re.compile(pattern + _GIVEN)
    for pattern in (
        rf"(?<!\w)-(?:[\w-]*{_SECRET_WORD}|(?:[\w-]*[-_])?{_SHORT_WORD})[= ]",
        r"\b(?:[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|CREDENTIALS?)[A-Z0-9_]*|[A-Z0-9_]+_(?:PWD|PASS))=",
        rf"{_SECRET_FIELD}=",
        rf"\\?[\"']{_SECRET_FIELD}\\?[\"']\s*:\s*(?=\\?[\"'])",  # JSON
        rf"{_SECRET_FIELD}: +(?=[^\s'\"]*\d)",  # YAML
        r"(?<!\w)-pass(?:in|out)?\s+(?:pass:)",  # openssl
        r"(?<!\w)(?:-{0,2})key=(?=[^\s]*\d)(?=[^\s]*[A-Za-z])(?=[^\s]{16})",  # of shorter ones, most are names of a field or a map's keys
        r"(?<!\w)-{0,2}\w[\w-]*[-_](?i:key)[= ](?=\S*\d)(?=\S*[a-z])(?=\S*[A-Z])(?=\S{32})",
        r"\b(?:mysql|mariadb)[\w-]*\s(?:[^|;&\n]*?\s)?-p",
        r"\bsshpass\s+-p\s*",
        r"\bmongo(?:sh|dump|export|import|restore)?\s[^|;&\n]*?-p\s+",
        r"\bredis-(?:cli|benchmark)\s[^|;&\n]*?-a\s+",
        r"\bldap\w+\s[^|;&\n]*?-w\s+",
        r"\b(?:curl|wget|https?)\s[^|;&\n]*?(?:-u\s*|-a\s+|--(?:proxy-)?user[= ])['\"]?[^\s:'\"]+:",
    )
)
_USER_AT_HOST = re.compile(r"(?<![\w/:.@-])[\w.-]+:(?!\$|\{)([^\s:@/'\"]+)@(?!sha\d)[\w-]+(?:\.[\w-]+|[:/])")


def without_known(text: str) -> str:
    """Return the text with `…` in place of each secret that stands in a known form; what is clean stays as it is."""
    for pattern in _PLACES:
        text = pattern.sub(rf"\g<before>{HIDDEN}", text)
    return TOKEN.sub(HIDDEN, text)


def in_commands(commands: Iterable[str]) -> Iterator[str]:
    """Yield what the commands give as a secret: `--password x`, `API_KEY=x`, `mysql -px`, `curl -u user:x`, `user:x@host`."""
    for command in commands:
        for pattern in _COMMAND:
            for found in pattern.findall(command):
                yield from filter(None, found)
        yield from _USER_AT_HOST.findall(command)
