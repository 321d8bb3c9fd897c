"""A small batch file: three jobs on two modules, with {remote} memory and one {profile}."""

BATCH = """version = 1
eta = 0.5
remote = "{remote}"

[[module]]
name = "fast"
count = 2
cores = 8
frequency = 2.0
memory = "8 GiB"
static = 1.5
dynamic = 0.5

[[workload]]
name = "job"
count = 3
cores = 4
frequency = 1.5
memory = "6 GiB"
tolerance = 0.5
profile = "{profile}"
"""
