"""Measuring real programs of this computer under less local memory: control groups, swap in memory, completion times."""
