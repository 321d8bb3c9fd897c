"""K-means clustering in two phases (Lloyd's algorithm in NumPy): first a quarter of a table, then all of it."""

import sys

import numpy as np
from progress import report

points = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
iterations = [int(word) for word in sys.argv[2:4]] if len(sys.argv) > 3 else [40, 20]
CLUSTERS, CHUNK = 48, 4096
rng = np.random.default_rng(0)
table = np.empty((points, 64), np.float32)
for first in range(0, points, CHUNK):
    table[first : first + CHUNK] = rng.random((len(table[first : first + CHUNK]), 64), dtype=np.float32)
centers, done = table[:CLUSTERS].copy(), 0
for share, rounds in zip((4, 1), iterations, strict=True):
    for _ in range(rounds):
        sums, counts = np.zeros_like(centers), np.zeros(CLUSTERS)
        for first in range(0, points // share, CHUNK):
            part = table[first : first + CHUNK]
            near = ((centers**2).sum(axis=1) - 2 * part @ centers.T).argmin(axis=1)
            chosen = (near[:, None] == np.arange(CLUSTERS)).astype(np.float32)
            sums += chosen.T @ part
            counts += chosen.sum(axis=0)
            done += len(part)
            report(done / 1e6)
        centers = (sums / np.maximum(counts, 1)[:, None]).astype(np.float32)
print(f"{done} points moved")
