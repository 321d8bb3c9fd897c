"""Benchmarks: `python -m benchmarks [NAME ...]`. Most figures are ratios within one run, so that computers are comparable."""
