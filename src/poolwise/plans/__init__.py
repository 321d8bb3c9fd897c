"""Kinds of plans, one file each; what a kind needs is in files beside it."""
