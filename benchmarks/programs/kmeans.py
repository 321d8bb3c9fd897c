"""K-means clustering by scikit-learn (pip install scikit-learn), Lloyd's algorithm over a table of random points."""

import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from sklearn.cluster import KMeans

points = int(sys.argv[1]) if len(sys.argv) > 1 else 600_000
rng = np.random.default_rng(0)
table = rng.random((points, 64), dtype=np.float32)
clusters = KMeans(16, init="random", n_init=1, max_iter=20, tol=0, algorithm="lloyd", copy_x=False, random_state=0).fit(table)
print(f"inertia {clusters.inertia_:.6g} after {clusters.n_iter_} iterations")
