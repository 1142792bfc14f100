"""Types as class files write them: descriptors and generic signatures, and what they are called."""

from __future__ import annotations

import functools
import re

_PRIMITIVE = dict(zip("BCDFIJSZV", ("byte", "char", "double", "float", "int", "long", "short", "boolean", "void"), strict=True))
_DESCRIPTOR = re.compile(r"\[*(?:[BCDFIJSZV]|L[^;]+;)")
_NESTED = re.compile(r"(?<=\w)\$(?=[^\W\d])")  # numbers of anonymous classes keep it


@functools.lru_cache(maxsize=65536)
def parameters(descriptor: str) -> tuple[str, ...]:
    """Return the descriptors of a method's parameters."""
    return tuple(_DESCRIPTOR.findall(descriptor[1 : descriptor.rindex(")")]))


def binary(descriptor: str) -> str:
    """Return a type by its binary name: `java.util.Map$Entry`, `int[]`."""
    element = descriptor.lstrip("[")
    name = element[1:-1].replace("/", ".") if element.startswith("L") else _PRIMITIVE[element]
    return name + "[]" * (len(descriptor) - len(element))


def shown(descriptor: str) -> str:
    """Return a type as it is written: `java.util.Map.Entry`."""
    return dotted(binary(descriptor))


def dotted(name: str) -> str:
    """Return a class by the name that is written, from its internal or binary one."""
    return _NESTED.sub(".", name.replace("/", "."))


def brief(descriptor: str) -> str:
    """Return the type of a descriptor without its package: `Map.Entry`."""
    return dotted(binary(descriptor).rpartition(".")[2])


def simple(descriptor: str) -> str:
    """Return the last part of a type's name: `Entry`, `int[]`."""
    return shown(descriptor).rpartition(".")[2]


def internal(descriptor: str) -> str:
    """Return the internal name of a class or interface, "" of anything else."""
    return descriptor[1:-1] if descriptor.startswith("L") else ""


def generic_parameters(signature: str) -> tuple[str, ...]:
    """Return the generic types of a method's parameters: `Ljava/util/List<TT;>;`."""
    at = signature.find("(") + 1
    parameters = []
    while 0 < at < len(signature) and signature[at] != ")":
        end = _after(signature, at)
        parameters.append(signature[at:end])
        at = end
    return tuple(parameters)


def elements(generic: str) -> tuple[str, ...]:
    """Return the types that a generic one is of: `Ljava/util/Map<TK;[I>;` gives `TK;` and `[I`, an array that of its elements."""
    if generic.startswith("["):
        return (generic[1:],)
    at = generic.find("<") + 1
    arguments = []
    while 0 < at < len(generic) and generic[at] != ">":
        if generic[at] == "*":
            at += 1
            continue
        at += generic[at] in "+-"
        end = _after(generic, at)
        arguments.append(generic[at:end])
        at = end
    return tuple(arguments)


def erased(generic: str) -> str:
    """Return the internal name or descriptor of a generic type without what it is of; "" of a variable."""
    if generic.startswith("L"):
        return f"L{re.split(r'[<;]', generic[1:], maxsplit=1)[0]};"
    return generic if generic.startswith("[") or len(generic) == 1 else ""


def _after(text: str, at: int) -> int:
    """Return where the type that begins at a place ends."""
    while text[at] == "[":
        at += 1
    if text[at] not in "LT":
        return at + 1
    depth = 0
    while depth or text[at] != ";":
        depth += (text[at] == "<") - (text[at] == ">")
        at += 1
    return at + 1
