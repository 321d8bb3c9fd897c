"""Daemons of a node, for its memory and for devices of other nodes, and measurement of programs."""
