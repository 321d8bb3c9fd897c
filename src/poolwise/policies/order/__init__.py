"""Queue orders: which waiting job comes first. One-line priorities share `priorities.py`."""
