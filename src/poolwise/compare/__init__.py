"""Comparisons: runs beside each other, and published values beside ours."""
