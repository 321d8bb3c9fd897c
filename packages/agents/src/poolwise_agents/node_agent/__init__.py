"""Node agent: publishes a node's devices, attaches devices of other nodes, and injects them into containers."""
