"""Placement of single tasks on processing units."""
