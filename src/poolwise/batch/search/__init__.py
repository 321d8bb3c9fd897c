"""Search for packings: costs, exchanges, annealing, column generation and bounds."""
