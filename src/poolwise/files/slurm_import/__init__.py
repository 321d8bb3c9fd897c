"""Import of a Slurm cluster: machine, scheduler and study files from slurm.conf, a log, and dumps of Slurm.

Each value in a file has a comment that names its source. A second slurm.conf, with the keys that a simulation reads, is written
for the order `multifactor` and the backfill `slurm`.
"""
