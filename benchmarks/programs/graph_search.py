"""Breadth-first searches from several vertices of a random graph, level by level."""

import sys

import numpy as np
from progress import report

vertices = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
sources = int(sys.argv[2]) if len(sys.argv) > 2 else 4
DEGREE = 24
rng = np.random.default_rng(0)
neighbors = rng.integers(0, vertices, (vertices, DEGREE), dtype=np.int32)
reached = looked_at = 0
for source in range(sources):
    depth = np.full(vertices, -1, np.int8)
    front, level = np.array([source]), 0
    depth[source] = 0
    while len(front):
        level += 1
        new = []
        for part in np.array_split(front, max(1, len(front) // 50_000)):
            near = neighbors[part].ravel()
            near = near[depth[near] < 0]
            depth[near] = level
            new.append(near)
            looked_at += len(part)
            report(looked_at / 1e6)
        front = np.unique(np.concatenate(new))
    reached += int((depth >= 0).sum())
print(f"{reached} vertices reached from {sources} of {vertices}")
