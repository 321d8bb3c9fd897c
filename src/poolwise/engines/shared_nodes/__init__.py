"""Compiled engine of list scheduling on nodes that jobs share."""
