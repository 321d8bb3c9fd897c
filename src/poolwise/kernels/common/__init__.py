"""Parts shared by the list scheduling kernels on racks and on shared nodes: queue order, tree of the queue, event loop."""
