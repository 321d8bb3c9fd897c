"""Reports: tables, figures and the HTML page. The only package that draws."""

from poolwise.report.reproduction import write_reproduction
from poolwise.report.study import write

__all__ = ["write", "write_reproduction"]
