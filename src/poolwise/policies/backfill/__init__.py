"""Backfill policies, which select the waiting jobs that start now, given their priorities."""
