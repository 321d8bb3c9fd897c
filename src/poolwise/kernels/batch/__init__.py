"""Kernels of batch placement: costs, best fit, local search, pricing."""
