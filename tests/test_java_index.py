"""The functions of Java programs: which there are, what they are called, and what they lead to."""

from __future__ import annotations
