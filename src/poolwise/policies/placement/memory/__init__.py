"""Placement on whole nodes with memory pools in their racks."""
