"""Memory use of jobs over their runs, from a file or drawn, and overestimated memory requests."""
