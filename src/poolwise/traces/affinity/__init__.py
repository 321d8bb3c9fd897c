"""Published measurements as affinity and power tables: operations per microsecond of a unit type on a task type.

Each module reads one source and registers itself under a name in the group "affinities".
"""

from poolwise.traces.affinity.tables import UnitTables

__all__ = ["UnitTables"]
