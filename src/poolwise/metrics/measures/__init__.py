"""Measures that are found by name, a file a family; `poolwise.metrics.summary` says which every run gets."""
