"""Programs for measurements with limited local memory, small enough to run anywhere; each runs as a separate process."""
