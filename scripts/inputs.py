"""The programs that figures are measured on: every fixture, and the real input with both of its workloads."""

from __future__ import annotations

import os
from pathlib import Path

import cmark
import programs
from perfdiff import configuration, pipeline
from perfdiff.config import Config

REAL = {"cmark links": cmark.ATTACK, "cmark paragraphs": cmark.PARAGRAPHS}


def names() -> list[str]:
    """Return the names of all programs."""
    return [*(case.name for case in programs.cases()), *REAL]


def request(name: str, room: Path, *revisions: str) -> pipeline.Request:
    """Return a comparison of a program; its repository is made in `room`, which also holds the cache, where it is not there yet."""
    if name in REAL:
        made = room / "cmark" / "repository"
        checkout = made if made.exists() else cmark.repository(made.parent)
        config = Config(cmark.BUILD, (REAL[name],))
    else:
        case = next(case for case in programs.cases() if case.name == name)
        checkout = room / name
        if not checkout.exists():
            programs.repository(case, checkout)
        config = configuration.load(checkout, environment={})
    return pipeline.Request(checkout, revisions, config, room / "cache", dict(os.environ))
