"""Slurm platform: polls the cluster with Slurm's clients, and writes through long-lived `scontrol` processes.

`client_calls` runs the clients, `parsing` turns their output into records, `machine` builds a machine from nodes
and licenses, `job_rows` reads the requests of jobs and keeps the job table. `platform` turns differences between polls into
events. `shadow_mode`, `order_mode` and `place_mode` carry out decisions; `commands` builds the `scontrol` commands of place
mode. Every write is verified by reading Slurm's state again.
"""
