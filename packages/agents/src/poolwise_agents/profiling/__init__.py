"""Profiling of real programs with reduced local memory: control groups, swap in memory, completion times."""
