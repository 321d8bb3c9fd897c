"""Kernels of task dispatch: tasks start on idle units, tier by tier."""
