"""Reports: tables, figures and the HTML page."""
