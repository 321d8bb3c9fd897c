"""The compiled family for list scheduling of rigid jobs on racks with memory pools."""
