"""Kernels of minimum-cost flow: shortest paths in a residual graph, and augmentation."""
