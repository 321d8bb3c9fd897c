"""Queue orders: rules that rank the waiting jobs. The published one-formula priorities are in `priorities`."""
