"""Admission policies, which decide which waiting jobs the scheduler may consider."""
