"""Compiled engine of list scheduling of rigid jobs on racks with memory pools."""
