"""Search for packings: bounds, columns, exchanges and what they cost."""
