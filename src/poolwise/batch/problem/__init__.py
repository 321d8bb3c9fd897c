"""The batch placement problem, its answers, and a checker that shares no code with the methods."""
