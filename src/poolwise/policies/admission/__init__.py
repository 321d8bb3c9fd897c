"""Admission: which waiting jobs may be considered at all."""
