"""Performance models: the run time of a job at its placement. Each file registers one model under a name."""
