"""Reproductions of published results, one file a paper."""
