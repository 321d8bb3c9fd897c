"""Profiling of real programs with less local memory: control groups, swap in memory, completion times."""
