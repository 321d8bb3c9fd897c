"""Compiled engine of list scheduling on composed devices."""
