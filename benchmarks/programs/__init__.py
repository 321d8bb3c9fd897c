"""Programs that are measured under less local memory, small enough to run anywhere; each is a process by itself."""
