"""Definitions as JSON knows them, for indexes that are kept on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from perfdiff.languages.protocol import BranchPlan, FeaturePlan, FunctionDefinition, Load, MacroBody
from perfdiff.records.schema import Origin


def plain(value: Any) -> Any:
    """Return a value of an index as JSON knows it: values by the order of their fields, sets sorted."""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if isinstance(value, Mapping):
        return [[key, plain(one)] for key, one in value.items()]
    if hasattr(value, "__dataclass_fields__"):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    return value


def function(values: list[Any]) -> FunctionDefinition:
    """Return the definition that `plain` made `values` of."""
    named = dict(zip((field.name for field in fields(FunctionDefinition)), values, strict=True))
    for name in ("uses", "calls", "reads", "writes"):
        named[name] = frozenset(named[name])
    named["names"], named["linkage"] = tuple(named["names"]), tuple(named["linkage"])
    named["no_code"] = tuple((first, last) for first, last in named["no_code"])
    named["features"] = tuple(map(_feature, named["features"]))
    named["branches"] = tuple(BranchPlan(*branch) for branch in named["branches"])
    named["made"] = MacroBody(*named["made"]) if named["made"] else None
    return FunctionDefinition(**named)


def _feature(values: list[Any]) -> FeaturePlan:
    name, origin, load, expression, category, labels = values
    return FeaturePlan(name, Origin(origin), Load(load), expression, category, None if labels is None else dict(map(tuple, labels)))
