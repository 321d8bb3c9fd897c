"""Benchmarks: `python -m benchmarks [NAME ...]`. Most figures are ratios within one run, comparable across computers."""
