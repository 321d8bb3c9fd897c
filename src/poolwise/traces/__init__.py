"""Traces: readers of job logs, one format a file; each registers itself under a name."""

from poolwise.traces.format import TraceFormat
from poolwise.traces.read import choose, info, read, stretch
from poolwise.traces.table import write_table

__all__ = ["TraceFormat", "choose", "info", "read", "stretch", "write_table"]
