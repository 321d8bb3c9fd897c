"""Word count of a generated text; word frequencies follow Zipf's law, as in books."""

import sys
from collections import Counter

import numpy as np

words = int(sys.argv[1]) if len(sys.argv) > 1 else 6_000_000
CHUNK = 200_000
rng = np.random.default_rng(0)
counts: Counter[str] = Counter()
for _ in range(words // CHUNK):
    drawn = rng.zipf(1.2, CHUNK) % 4_000_000
    counts.update(f"word{number}" for number in drawn.tolist())
print(f"{counts.total()} words, {len(counts)} distinct")
