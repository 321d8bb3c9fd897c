"""Slurm as a platform: read by its clients, written to by a `scontrol` that stays, and read again after every write.

`calls` and `session` talk to Slurm, `reading` makes plain records of what it prints, `layout` makes a machine of nodes and
licences, `requests` a job of what its user asks for, `rows` the job table. `following` compares one reading with the next,
`platform` tells a loop; `shadow`, `order` and `place` are what becomes of decisions, `commands` what is said to Slurm for them.
"""
