"""Reproductions of published results, one module or package for each paper."""
