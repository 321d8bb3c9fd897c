"""Cost models of flow scheduling: the costs of placing a task, and of letting it wait. `model` defines the interface."""
