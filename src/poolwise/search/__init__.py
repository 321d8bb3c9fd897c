"""Searches for queue orders: many candidates, tried on many workloads, compared with an order that is known."""
