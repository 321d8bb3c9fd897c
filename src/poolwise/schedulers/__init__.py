"""Schedulers: list (order + placement + backfill), warm-up. Flow and batch schedulers join them."""
