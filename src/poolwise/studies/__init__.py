"""Studies: what to vary, run in parallel, resumable."""
