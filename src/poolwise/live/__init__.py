"""What runs on real clusters: platforms that are there, what drives them with a scheduler, and what watches them.

`drive` runs the same loop as everywhere; `live.slurm` and `live.kubernetes` are platforms. Everything else here observes:
metrics, logs, the record of decisions, and why jobs wait.
"""
