"""What differs between base and head where a user runs them, and not where perfdiff does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class UncomparedReason(StrEnum):
    """Why a difference is not compared."""

    BUILD = "build"  # a build command that was guessed decides it
    ABSENT = "absent"  # what it uses is there by hand, and in no build
    PINS = "pins"  # files pin other versions of packages than runs have, which are the same ones for both sides
    LISTED = "listed"  # one side alone lists a package that sources import where there is any, and no runs have it
    INTERPRETER = "interpreter"  # base and head ask for other interpreters, and all runs have one
    HOLDINGS = "holdings"  # what users install holds other files than the tree, in which runs find all
    COMMANDS = "commands"  # what users call starts another function, which no workload runs
    STARTED = "started"  # what starts the program for users gives it other options or limits, and runs are started by the workload
    COMMIT = "commit"  # the files are the same, and so is the build, but runs look at the commit
    SUBMODULE = "submodule"  # changes within a submodule are in no commit
    CHECKOUT = "checkout"  # runs ask for files that the user's checkout has, and no revision
    FAILING = "failing"  # cases that run in base fail in head
    KILLED = "killed"  # processes of head alone are killed, and leave work undone
    RANK = "rank"  # head asks the kernel to run it behind others, which shows on a busy machine alone
    SUCCESSION = "succession"  # runs that follow each other in one tree take longer in head
    REPEATED = "repeated"  # and fail there
    BY_HAND = "by-hand"  # runs on a terminal, and without variables of perfdiff's own, take longer in head
    FAILING_BY_HAND = "failing-by-hand"  # and fail there
    SETUP = "setup"  # a service outside the revisions, for which head waits longer, is laid out by files that differ
    FIRST = "first"  # a first call in a process takes longer than in base, where runs call again and again


@dataclass(frozen=True, slots=True)
class ComparisonGap:
    """Files or folders that differ, or workloads, `why` that is not compared, and how many times as long head takes, if that is seen."""

    why: UncomparedReason
    names: tuple[str, ...]
    ratio: float = 1.0
