"""Platforms: machines that run jobs, simulated or real."""
