"""How the agent gets into the JVMs of a target: by a variable that each of them reads at its start, whoever started it."""

from __future__ import annotations

from pathlib import Path

SHEET = "PERFDIFF_JAVA"
COSTS = "PERFDIFF_JAVA_COSTS"
OPTIONS = "JAVA_TOOL_OPTIONS"
OUTSIDE = "PERFDIFF_OUTSIDE"
PLACES = "PERFDIFF_JAVA_LINES"


def environment(sheet: Path, agent: Path, costs: str = "", options: str = "") -> dict[str, str]:
    """Return the variables of a run whose methods are probed as the sheet says; `options` are those that JVMs are given anyway.

    `costs` is what `calibrating` measured, as its text.
    Ours come first, so that the agent sees classes as they are in their files, ahead of agents that change them.
    """
    return {SHEET: str(sheet), COSTS: costs, OPTIONS: f"{_quoted(f'-agentpath:{agent}')} {options}".rstrip()}


def counting(sheet: Path, outside: Path, agent: Path, options: str = "") -> dict[str, str]:
    """Return the variables of a run whose calls are counted, too: `outside` names what is called of others."""
    return {**environment(sheet, agent, options=options), OUTSIDE: str(outside)}


def lines(sheet: Path, places: int, agent: Path, options: str = "") -> dict[str, str]:
    """Return the variables of a run that counts `places` lines."""
    return {**environment(sheet, agent, options=options), PLACES: str(places)}


def _quoted(option: str) -> str:
    """Return an option as the variable takes it: what has a blank or a quote in it stands between quotes of the other kind."""
    if not any(mark in option for mark in " \t'\""):
        return option
    return f'"{option}"' if '"' not in option else f"'{option}'"
