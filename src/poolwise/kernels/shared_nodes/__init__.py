"""Kernels that replay list scheduling on nodes that jobs share."""
