"""Optimization algorithms on arrays, independent of what rows and columns represent."""
