"""Placement on shared nodes with pooled devices and memory."""
