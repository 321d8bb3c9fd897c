"""The agent of one node that moves local memory between running workloads, so that each stays within its tolerance."""
