"""Commands of poolwise-agents; each module adds one to the command line of Poolwise when it is imported."""
