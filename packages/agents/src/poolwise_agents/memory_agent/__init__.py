"""Memory agent of a node: moves local memory between running workloads to keep each within its slowdown tolerance."""
