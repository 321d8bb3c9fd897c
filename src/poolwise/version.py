"""Version of Poolwise."""

__version__ = "0.1.0"
