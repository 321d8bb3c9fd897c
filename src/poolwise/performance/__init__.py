"""How long a job takes where it is placed. One model a file; each registers itself under a name."""
