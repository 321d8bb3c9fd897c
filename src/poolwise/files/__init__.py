"""File formats: reading and writing TOML, and errors that name file, line and field."""
