"""The batch placement problem, its solutions, and a checker that shares no code with the methods."""
