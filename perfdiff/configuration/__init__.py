"""What the user configures: which values there are, how they are written, and what holds where several places say something."""

from perfdiff.configuration.checking import check_keys, checked_table, nearest
from perfdiff.configuration.links import Worse, links
from perfdiff.configuration.overrides import Overrides
from perfdiff.configuration.reading import FILE, PYPROJECT, load, project

__all__ = ["FILE", "PYPROJECT", "Overrides", "Worse", "check_keys", "checked_table", "links", "load", "nearest", "project"]
