"""Preemption policies, which decide which runs a waiting job may stop."""
