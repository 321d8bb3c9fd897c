"""Placement policies: where a job runs."""
