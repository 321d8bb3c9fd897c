"""Alternative formats for machines: one module per format, registered by name.

A machine file, or the machine of a study, selects one with `format = "NAME"`; the format's settings are keys of the same table.
"""
