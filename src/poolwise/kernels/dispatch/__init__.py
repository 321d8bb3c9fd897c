"""Kernels that dispatch tasks to idle units, tier by tier."""
