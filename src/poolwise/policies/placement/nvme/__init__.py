"""Placement on composed and shared NVMe devices."""
