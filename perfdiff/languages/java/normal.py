"""Instructions in their normal form: the same for code that does the same, whatever number compilers gave to what has no name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from perfdiff.languages.digest import digest
from perfdiff.languages.java.classes import STATIC, SYNCHRONIZED, SYNTHETIC, Class, Method

OWN = "\ue000"  # stands for the class itself; no name has this letter
_LAMBDA = re.compile(rf"{OWN}\.lambda\$[\w$]+")
_LONGER = re.compile(rf"{OWN}(?=[\w/])|(?<=/){OWN}")
_ACCESS = re.compile(rf"([\w/${OWN}]+)\.(access\$\d+)(\([^)]*\)\S+)")
_CAPTURED = re.compile(rf"{OWN}#(val\$[\w$]+)")
_CHOICE = re.compile(r"^switch (?P<cases>.*)default:(?P<default>L\d+)$")
_SWITCH_MAP = "$SwitchMap$"
_MAPPED = re.compile(
    r"getstatic [^\n]*#(?P<map>\$SwitchMap\$[\w$]+)#\[I\ngetstatic [^\n#]*#(?P<name>[^\n#]+)#[^\n]*\n"
    r"invokevirtual [^\n]*\.ordinal\(\)I\npush int (?P<number>\d+)\niastore"
)
# Runtime annotations that tell tools and people something, and nothing to a running program.
_SILENT = re.compile(
    r"(?:\d+ )?(?:Ljava/lang/(?:Deprecated|FunctionalInterface|SafeVarargs);|L[\w/$]*/(?:Nullable|NonNull|NotNull|Nonnull);).*", re.DOTALL
)


def fingerprint(method: Method, of: Class, classes: Mapping[str, Class]) -> str:
    """Return a digest of what a method does; `classes` are the project's, by internal name."""
    assert method.code is not None, "it has instructions"
    flags = method.access & (STATIC | SYNCHRONIZED)
    text = normalised(method.code.text, of, classes)
    return digest((str(flags), _own(method.descriptor, of.name), text, *meaningful(method.annotations)))


def meaningful(annotations: tuple[str, ...]) -> list[str]:
    """Return the annotations that a running program may look at."""
    return sorted(annotation for annotation in annotations if not _SILENT.fullmatch(annotation))


def normalised(text: str, of: Class, classes: Mapping[str, Class]) -> str:
    """Return instructions with numbers by order for lambdas, local and anonymous classes, and a sign for their own class."""
    if _SWITCH_MAP in text:
        text = "\n".join(_named_choices(text.split("\n"), classes))
    text = _own(text, of.name)
    if "$" not in text:
        return text
    seen: dict[str, str] = {}
    text = _LAMBDA.sub(lambda match: seen.setdefault(match[0], f"lambda {len(seen)}"), text)
    text = _without_numbers(text, of, classes)
    if "access$" in text:
        text = _ACCESS.sub(lambda match: _accessor(match, of, classes), text)
    if "val$" in text:
        order = [field.name for field in of.fields if field.name.startswith("val$")]
        text = _CAPTURED.sub(lambda match: f"{OWN}#val{order.index(match[1]) if match[1] in order else ''}", text)
    return text


def _own(text: str, name: str) -> str:
    """Return a text with the sign for the class of this name; a package makes it easy to find."""
    if name not in text:
        return text
    return _LONGER.sub(lambda _: name, text.replace(name, OWN)) if "/" in name else _renamed(text, name, OWN)


def _renamed(text: str, name: str, other: str) -> str:
    """Return a text with another name for a class, where it stands alone and where it stands in descriptors."""
    escaped = re.escape(name)
    text = re.sub(rf"L{escaped}(?=[;$])", f"L{other}", text)
    return re.sub(rf"(?<![\w/$]){escaped}(?![\w/])", other, text)


def _without_numbers(text: str, of: Class, classes: Mapping[str, Class]) -> str:
    """Give the local and anonymous classes of a text the names of their parents, and a number in the order in which it names them."""
    local = [(name, simple, access) for name, outer, simple, access in of.inner if outer is None and name != of.name and name in text]
    named = sorted(local, key=lambda inner: text.index(inner[0]))
    labels = {}
    for number, (name, simple, access) in enumerate(named):
        what = "switch map" if access & SYNTHETIC else simple or _parent(name, classes)
        labels[name] = f"<{what} {number}>"
    for name in sorted(labels, key=len, reverse=True):
        text = _renamed(text, name, labels[name])
    return text


def _parent(name: str, classes: Mapping[str, Class]) -> str:
    class_ = classes.get(name)
    return next(iter((*class_.interfaces, class_.parent or "")), "") if class_ is not None else ""


def _accessor(match: re.Match[str], of: Class, classes: Mapping[str, Class]) -> str:
    """Return what a way to a private member does, in place of its name."""
    owner = of if match[1] == OWN else classes.get(match[1])
    method = owner.by_signature.get((match[2], match[3].replace(OWN, of.name))) if owner is not None else None
    return f"{match[1]}.access {digest((method.code.text,))}" if method is not None and method.code is not None else match[0]


def _named_choices(lines: list[str], classes: Mapping[str, Class]) -> Iterator[str]:
    """Yield lines with names of constants for the numbers that compilers give them in the order in which a file's switches name them."""
    names: dict[str, str] = {}
    for line in lines:
        if line.startswith("getstatic ") and _SWITCH_MAP in line:
            owner, name, _ = line.removeprefix("getstatic ").split("#")
            names = _switch_map(classes.get(owner), name)
            yield f"getstatic <switch map> {name}"
        elif names and (choice := _CHOICE.match(line)):
            cases = sorted(_case(case, names.get) for case in choice["cases"].split())
            names = {}
            yield " ".join(("switch", *cases, f"default:{choice['default']}"))
        else:
            yield line


def _case(case: str, name: Callable[[str], str | None]) -> str:
    number, _, label = case.partition(":")
    return f"{name(number) or number}:{label}"


def _switch_map(class_: Class | None, name: str) -> dict[str, str]:
    code = class_.by_signature.get(("<clinit>", "()V")) if class_ is not None else None
    if code is None or code.code is None:
        return {}
    return {match["number"]: match["name"] for match in _MAPPED.finditer(code.code.text) if match["map"] == name}
