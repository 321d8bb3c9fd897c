"""Readers of Slurm's own files as plain data: `slurm.conf`, and dumps of `sshare` and `sacctmgr`. No policy is applied here."""
