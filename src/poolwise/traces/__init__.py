"""Trace formats: readers of job logs and accounting exports, one module per format, each registered under a name."""

from poolwise.traces.format import TraceFormat
from poolwise.traces.read import choose_format, excerpt, info, read, read_all, without
from poolwise.traces.table import write_table

__all__ = ["TraceFormat", "choose_format", "excerpt", "info", "read", "read_all", "without", "write_table"]
