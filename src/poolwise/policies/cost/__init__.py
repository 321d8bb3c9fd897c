"""What placing and waiting cost in flow scheduling: one cost model per file; `model` says what they have in common."""
