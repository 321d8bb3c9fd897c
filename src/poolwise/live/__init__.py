"""Live runs: platforms for real clusters, the control loop that drives them with a scheduler, and their observability.

`control_loop.drive` runs the same loop as simulations do; `live.slurm` and `live.kubernetes` are platforms. The other modules
observe a run: metrics, structured logs, the record of decisions, and the reasons why jobs wait.
"""
