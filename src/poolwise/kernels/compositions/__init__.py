"""Kernel of list scheduling on composed devices: places workloads on compositions and follows their shared speeds."""
