"""Measurements of others as tables of affinity and power: what a unit type does of a task type in a microsecond.

One source a file; each registers itself under a name in the group "affinities".
"""

from poolwise.traces.affinity.tables import UnitTables

__all__ = ["UnitTables"]
