"""Machines that are described in other forms than a machine file: one module per form, found by its name.

A machine file, or the machine of a study, that says `format = "NAME"` has the settings of that form beside it.
"""
