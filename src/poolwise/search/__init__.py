"""Search for queue orders: evaluates many candidates on many workloads and compares them with a baseline."""
