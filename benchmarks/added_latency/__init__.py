"""Experiment: slowdowns of real programs with a latency that a program in the kernel adds to each page-in."""
