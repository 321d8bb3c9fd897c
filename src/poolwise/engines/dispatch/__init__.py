"""Compiled engine of task dispatch: tasks on processing units."""
