"""The tokens of a definition's text, without what means nothing, for comparing texts that are not the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from perfdiff.languages.protocol import FunctionDefinition
from perfdiff.languages.python.meaning import FUNCTIONS, bound_lambda, fingerprint
from perfdiff.languages.python.normal import normalise
from perfdiff.languages.python.renaming import number_locals

# Of text that `ast.unparse` wrote: strings in all their forms, numbers, words, operators.
_TOKEN = re.compile(
    r"""
      [A-Za-z]{0,2}(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
    | \.?\d(?:[eE][+-]|[\w.])*
    | [^\W\d]\w*
    | \*\*=?|//=?|<<=?|>>=?|->|:=|\.\.\.|[-+*/%&|^@<>=!]=
    | \S
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_WORD = re.compile(r"[^\W\d]\w*\Z")


@dataclass(frozen=True, slots=True)
class PythonTextParts:
    """The tokens of a definition, part by part, and the modules that its own statements import, as they are written there."""

    decorators: tuple[str, ...]
    signature: tuple[str, ...]
    body: tuple[str, ...]
    imports: frozenset[str] = frozenset()

    @property
    def all(self) -> tuple[str, ...]:
        """Return the tokens in the order of the text."""
        return (*self.decorators, *self.signature, *self.body)


def parts(definition: FunctionDefinition) -> PythonTextParts:
    """Return the tokens of a definition's text: without annotations and docstrings, and without the bodies of functions inside it."""
    node = _parsed(definition)
    normalise(node)
    _strip(node)
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            head = _tokens(f"{kind} {node.name}({ast.unparse(node.args)})")
            return PythonTextParts(tuple(_each(node.decorator_list)), head, tuple(_each(node.body)), _imports(node))
        case ast.Lambda():
            return PythonTextParts((), _tokens(f"lambda {ast.unparse(node.args)}"), _tokens(ast.unparse(node.body)))
    return PythonTextParts((), (), _tokens(ast.unparse(node)), _imports(node))


def without_local_names(definition: FunctionDefinition) -> str | None:
    """Return a digest of what a function means, whatever its local variables are called; None where their names may matter."""
    node = _parsed(definition)
    normalise(node)
    return fingerprint(node) if number_locals(node) else None


def defaults(signature: str) -> dict[str, str]:
    """Return the default of each parameter that has one, as it is written; none of a signature that cannot be parsed."""
    try:
        [function] = ast.parse(f"def _{signature or '()'}: pass").body
    except SyntaxError:
        return {}
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    pairs = [
        *zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    return {parameter.arg: ast.unparse(default) for parameter, default in pairs if default is not None}


def is_word(token: str) -> bool:
    """Return whether a token is a name or keyword."""
    return _WORD.match(token) is not None


def _parsed(definition: FunctionDefinition) -> ast.AST:
    if definition.linkage[0].endswith(" <module>"):
        return ast.parse(definition.text)
    if definition.linkage[0].endswith(" <lambda>"):
        return ast.parse(f"({definition.text}\n)", mode="eval").body
    first = int(definition.linkage[0].partition(" ")[0])
    named = _LINE_END.split(definition.text)[definition.line - first]
    indent = named[: len(named) - len(named.lstrip())] if definition.line > first else ""
    if not indent:
        return ast.parse(definition.text).body[0]
    # Its first line has lost its indent, the others have not: it is put back where it stood, in a block.
    block = ast.parse(f"if True:\n{indent}{definition.text}").body[0]
    assert isinstance(block, ast.If)
    return block.body[0]


def _strip(node: ast.AST) -> None:
    """Take out annotations, and the bodies of functions inside."""
    for below in ast.walk(node):
        if isinstance(below, ast.arg):
            below.annotation = None
        elif isinstance(below, FUNCTIONS):
            below.returns = None
            if below is not node:
                below.body = []
        elif (function := bound_lambda(below)) is not None:
            function.body = ast.Constant(...)


def _imports(node: ast.AST) -> frozenset[str]:
    """Return the modules that are imported: `a.b` and `.c`, which name those of the package itself."""
    modules: set[str] = set()
    for statement in ast.walk(node):
        if isinstance(statement, ast.Import):
            modules |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            package = "." * statement.level
            modules |= {f"{package}{statement.module}"} if statement.module else {f"{package}{alias.name}" for alias in statement.names}
    return frozenset(modules)


def _each(nodes: list[ast.expr] | list[ast.stmt]) -> Iterator[str]:
    for node in nodes:
        yield from _tokens(ast.unparse(node))


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text))
