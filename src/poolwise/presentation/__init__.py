"""Figures and tables as plain data: what is shown, with which words and units. Only the report draws them."""
