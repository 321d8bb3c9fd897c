"""Kubernetes platform: pods are jobs; nodes, devices and memory pools form the machine."""
