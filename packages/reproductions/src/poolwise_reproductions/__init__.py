"""Comparisons of Poolwise with published systems, one package per paper, for `poolwise reproduce` and `poolwise overview`."""
