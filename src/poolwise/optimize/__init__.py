"""Optimisation: arrays in, arrays out. Nothing here knows what a row or a column means."""
