"""The memory that jobs really use over their runs: from a file, or drawn; and users who ask for more than that."""
