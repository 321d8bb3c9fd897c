"""Commands of poolwise-reproductions; each module adds one to the command line of Poolwise when it is imported."""
