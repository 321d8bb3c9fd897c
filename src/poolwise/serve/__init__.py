"""Local web server of `poolwise serve`: shows the studies of a folder and runs commands on them. Requires the extra `serve`."""
