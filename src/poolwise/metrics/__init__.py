"""Metrics: numbers computed from a schedule, each with its formula and source."""
