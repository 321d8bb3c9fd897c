"""The daemon of a node: publishes its devices, attaches devices of other nodes, and hands them to containers."""
