"""Figures, tables and text formats as plain data, with labels and units; only the report renders them."""
