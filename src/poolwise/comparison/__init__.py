"""Comparisons of runs with each other, and of published values with ours."""
