"""The compiled family for list scheduling on nodes that jobs share."""
