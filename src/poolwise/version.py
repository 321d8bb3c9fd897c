"""Which version of Poolwise this is."""

__version__ = "0.1.0"
