"""Replay of list scheduling on nodes that jobs share: what a node has free, when it will, who may start."""
