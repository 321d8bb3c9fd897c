"""Placement of jobs on nodes that they share: cores, memory and devices of one node or several."""
