"""Kernels of minimum-cost flow: shortest paths in a residual graph, augmentation, negative cycles, push-relabel."""
