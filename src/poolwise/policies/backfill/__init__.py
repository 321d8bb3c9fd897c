"""Backfills: which waiting jobs start now, given their priorities."""
