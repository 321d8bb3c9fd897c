"""The compiled family for tasks that are dispatched to processing units."""
