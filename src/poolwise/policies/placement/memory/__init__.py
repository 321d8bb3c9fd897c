"""Placement of whole nodes with memory pools in their racks."""
