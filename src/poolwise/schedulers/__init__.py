"""Schedulers: list, flow, greedy and batch scheduling, task dispatch, composed devices, and warm-up."""
