"""What Slurm's own files say, as plain data: `slurm.conf`, dumps of `sshare` and `sacctmgr`. Nothing here decides anything."""
