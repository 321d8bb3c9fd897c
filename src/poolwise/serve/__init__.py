"""`poolwise serve`: the studies of a folder in a browser, for looking and for asking. Needs the extra `serve`."""
