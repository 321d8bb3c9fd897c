"""Kinds of plans, one file each; what a kind needs stands in files beside it."""
