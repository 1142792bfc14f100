"""How Java methods differ between base and head."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perfdiff.languages import matching
from perfdiff.languages.dialect import Dialect, Renames, reasons_of
from perfdiff.languages.java import texts
from perfdiff.languages.java.alignment import aligned
from perfdiff.languages.java.declarations import CONSTANT, FIELD, OVERRIDDEN
from perfdiff.languages.protocol import Counterpart, Declaration, FunctionDefinition, Program
from perfdiff.records.differences import ChangeReason, ReasonKind, other_reason, text_reason

_PARAMETERS = re.compile(r"\([^()]*\)")
_COMPILED = "its instructions changed, and neither its text nor anything of the project that it uses"


def match(base: Program, head: Program) -> tuple[Counterpart, ...]:
    """Pair the methods of both revisions and say how each differs; methods without any difference are returned as well.

    Lambdas and anonymous classes keep their counterparts where others are added before them, and methods where their parameters change.
    """
    same, originals = aligned(base, head, _tokens)
    first, second = _compared(base, same)
    dialect = Dialect(_parts, _tokens, _Texts(first, second).reasons)
    return tuple(_told(pair, base, originals) for pair in matching.match(first, second, dialect))


def _tokens(definition: FunctionDefinition) -> Sequence[str]:
    return texts.parts(definition).all


def _told(pair: Counterpart, base: Program, head: Mapping[str, FunctionDefinition]) -> Counterpart:
    """Return a pair with its definitions as they are, and what the one that is added or removed overrides."""
    before = None if pair.base is None else base.functions[pair.base.key]
    after = None if pair.head is None else head[pair.head.key]
    alone = after if before is None else before if after is None else None
    overridden = sorted(key.removeprefix(OVERRIDDEN) for key in alone.uses if key.startswith(OVERRIDDEN)) if alone is not None else []
    says = "overrides" if before is None else "calls now reach"
    return replace(pair, base=before, head=after, reasons=(*pair.reasons, *(other_reason(f"{says} {name}") for name in overridden)))


def _compared(base: Program, head: Program) -> tuple[Program, Program]:
    """Return both programs without what methods override, and without constants in those that did not change.

    Compilers write the values of constants into the instructions.
    """
    unchanged = {key for key in base.functions.keys() & head.functions.keys() if base.functions[key].tokens == head.functions[key].tokens}
    return _stripped(base, unchanged), _stripped(head, unchanged)


def _stripped(program: Program, keys: set[str]) -> Program:
    both, one_only = (OVERRIDDEN, CONSTANT), (OVERRIDDEN,)
    functions = {key: _strip(method, both if key in keys and method.tokens else one_only) for key, method in program.functions.items()}
    return replace(program, functions=functions)


def _strip(function: FunctionDefinition, kinds: tuple[str, ...]) -> FunctionDefinition:
    uses = frozenset(key for key in function.uses if not key.startswith(kinds))
    return replace(function, uses=uses) if len(uses) < len(function.uses) else function


class _Texts:
    """How texts of Java are compared: by their tokens, where the instructions differ."""

    def __init__(self, base: Program, head: Program) -> None:
        self._base, self._head = base, head
        self._fields = _renamed_fields(base.declarations, head.declarations)

    def reasons(self, base: FunctionDefinition, head: FunctionDefinition, renames: Renames) -> tuple[ChangeReason, ...]:
        """Return what of a method differs: its annotations, its modifiers, its signature, its body, or its instructions alone."""
        if base.tokens == head.tokens and (base.tokens or base.text == head.text):
            return ()
        before, after = texts.parts(base), texts.parts(head)
        renamed = {pair for old, new in {*renames, *self._renamed_in(base, head)} for pair in _renamed_parts(old, new)}
        stretches = (
            (text_reason("annotations changed"), before.annotations, after.annotations),
            (_modifiers(before.modifiers, after.modifiers), before.modifiers, after.modifiers),
            (text_reason("signature changed"), before.signature, after.signature),
            (text_reason("body changed"), before.body, after.body),
        )
        reasons = reasons_of(stretches, lambda old, new: (old, new) in renamed)
        if reasons or not base.tokens or self._is_explained(base, head):
            return tuple(reasons)
        return (text_reason(_COMPILED),)

    def _renamed_in(self, base: FunctionDefinition, head: FunctionDefinition) -> Iterator[tuple[str, str]]:
        """Yield the names of renamed fields, if these are all that a method uses otherwise: another class may have fields of such names."""
        before, after = ({key for key in definition.uses if key.startswith(FIELD)} for definition in (base, head))
        if {self._fields.get(key, key) for key in before} == after:
            yield from ((key.removeprefix(FIELD), self._fields[key].removeprefix(FIELD)) for key in before & self._fields.keys())

    def _is_explained(self, base: FunctionDefinition, head: FunctionDefinition) -> bool:
        """Return whether something that a method names is another thing in head: then its instructions name it otherwise too."""
        before, after = self._base.declarations, self._head.declarations
        if base.uses != head.uses or base.calls != head.calls:
            return True
        if any(before[key].fingerprint != after[key].fingerprint for key in base.uses):
            return True
        earlier, now = self._base.functions, self._head.functions
        return any(key in now and key in earlier and earlier[key].linkage != now[key].linkage for key in base.calls)


def _modifiers(before: Sequence[str], after: Sequence[str]) -> ChangeReason:
    new, gone = [modifier for modifier in after if modifier not in before], [modifier for modifier in before if modifier not in after]
    parts = [f"now {' '.join(new)}"] if new else []
    parts += [f"no longer {' '.join(gone)}"] if gone else []
    return ChangeReason(ReasonKind.NEWLY if new else ReasonKind.TEXT, ", ".join(parts))


def _renamed_fields(base: Mapping[str, Declaration], head: Mapping[str, Declaration]) -> Mapping[str, str]:
    """Return by the keys of base those that fields have in head which differ by their name alone.

    Of its class such a field is the only one that is gone, and the only new one, of its type, modifiers and value.
    """
    gone, new = _fields(base, head), _fields(head, base)
    return {gone[like][0]: new[like][0] for like in gone.keys() & new.keys() if len(gone[like]) == len(new[like]) == 1}


def _fields(declarations: Mapping[str, Declaration], others: Mapping[str, Declaration]) -> Mapping[tuple[str, str], list[str]]:
    """Return the keys of fields that the others lack, by class and by all that a field is beside its name."""
    by_class: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in declarations.keys() - others.keys():
        if key.startswith(FIELD):
            by_class[key.rpartition(".")[0], declarations[key].fingerprint].append(key)
    return by_class


def _parts(name: str) -> Sequence[str]:
    """Return the parts of a qualified name, without parameters."""
    return _PARAMETERS.sub("", name).split(".")


def _renamed_parts(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield the names of methods, fields, classes or packages in a qualified name that are others in its new one."""
    return ((old, new) for old, new in zip(_parts(before), _parts(after), strict=False) if old != new and texts.is_word(old))
