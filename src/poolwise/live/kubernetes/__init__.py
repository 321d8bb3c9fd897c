"""Kubernetes as a platform: pods are jobs; nodes, devices and pools are the machine."""
