"""Batch placement methods, one file each."""
