"""Checks that a policy, scheduler or model keeps its contract. Public: run it on your own."""
