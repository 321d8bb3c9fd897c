"""Reports: tables, figures and the HTML page. This is the only package that draws."""

from poolwise.report.leave_out import leave_out
from poolwise.report.study import changes_against_today, write_study_report

__all__ = ["changes_against_today", "leave_out", "write_study_report"]
