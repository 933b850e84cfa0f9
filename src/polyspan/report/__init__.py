"""The report: one HTML file that shows a clustering and works without a network."""

from polyspan.report.write import report_model, write_report

__all__ = ["report_model", "write_report"]
