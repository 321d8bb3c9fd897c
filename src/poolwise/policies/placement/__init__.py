"""Placement policies: where jobs run."""
