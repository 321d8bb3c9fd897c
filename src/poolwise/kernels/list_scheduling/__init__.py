"""Kernels that replay list scheduling of rigid jobs on racks with memory pools."""
