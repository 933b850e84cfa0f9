"""The report: one HTML file that shows a clustering and works without a network."""

from polyspan.report.write import write_report

__all__ = ["write_report"]
