"""Poolwise: plan, simulate and run workloads on disaggregated datacenters."""

__version__ = "0.1.0"
