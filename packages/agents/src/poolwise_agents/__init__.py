"""Daemons of a node, for its memory and for remote devices, and measurement of programs."""
