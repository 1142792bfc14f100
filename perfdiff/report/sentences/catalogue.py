"""The words for claims: each kind of claim has its wording in one of the modules beside this one."""

from __future__ import annotations

from collections.abc import Mapping

from perfdiff.analysis.claims import Claim, Fact
from perfdiff.records.schema import Note
from perfdiff.report.sentences import (
    annotated,
    behaviour,
    beside,
    causes,
    chains,
    citations,
    counts,
    functions,
    headlines,
    judgements,
    notes,
    outside,
    program,
    searches,
)
from perfdiff.report.sentences.spelling import Wording, filled

SUBJECTS = (
    annotated,
    behaviour,
    beside,
    causes,
    chains,
    citations,
    counts,
    functions,
    headlines,
    judgements,
    notes,
    outside,
    program,
    searches,
)
WORDINGS: Mapping[str, Wording] = {kind: wording for subject in SUBJECTS for kind, wording in subject.WORDINGS.items()}


def say(claim: Claim | None) -> str:
    """Return a claim in words, "" for none."""
    if claim is None:
        return ""
    facts = {name: _in_words(fact) for name, fact in claim.facts.items()}
    wording = WORDINGS[claim.kind]
    return filled(wording, facts) if isinstance(wording, str) else wording(facts)


def noted(note: Note | Claim) -> Note:
    """Return a note in words; a claim's kind is its slug."""
    return note if isinstance(note, Note) else Note(note.kind, say(note))


def _in_words(fact: Fact) -> object:
    """Return a fact, claims in words."""
    if isinstance(fact, tuple):
        return tuple(say(item) if isinstance(item, Claim) else item for item in fact)
    return say(fact) if isinstance(fact, Claim) else fact
