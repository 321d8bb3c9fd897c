"""Benchmarks: `python -m benchmarks [NAME ...]`. Each is a ratio within one run, so that another computer says the same."""
