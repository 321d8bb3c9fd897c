"""Traces: readers of job logs, one format a file; each registers itself under a name."""
