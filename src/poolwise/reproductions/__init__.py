"""Reproductions of published results, one package per paper."""
