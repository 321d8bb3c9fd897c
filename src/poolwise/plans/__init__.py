"""Plans: purchases or settings that meet stated targets, with the evidence."""
