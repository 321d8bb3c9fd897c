"""Registered measures, one module per family; `poolwise.metrics.summary` selects those that every run gets."""
