"""How long a job takes where it is placed. One model per file; each registers itself under a name."""
