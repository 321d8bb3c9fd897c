"""File formats: validated TOML files, and errors that report file, line, field and remedy."""
