"""Slurm platform: polls the cluster with Slurm's clients, and writes through long-lived `scontrol` processes.

`client_calls` and `session` run the clients, `parsing` turns their output into records, `machine` builds a machine from nodes
and licenses, `job_request` reads the request of a job, `job_rows` keeps the job table. `poller` compares consecutive polls,
`platform` turns the differences into events. `shadow_mode`, `order_mode` and `place_mode` carry out plans; `commands` builds
the `scontrol` commands of place mode. Every write is verified by reading Slurm's state again.
"""
