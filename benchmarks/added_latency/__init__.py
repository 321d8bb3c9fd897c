"""Experiment: slowdowns of real programs when a kernel program adds latency to each page-in."""
