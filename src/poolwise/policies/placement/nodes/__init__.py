"""Placement on shared nodes: cores, memory and devices of one node or several."""
