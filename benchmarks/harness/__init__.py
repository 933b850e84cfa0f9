"""Compare methods: run a protocol, store its rows, make tables from them.

The steps of a comparison::

    protocol (plan) -> jobs -> runner (workers, rows) -> store -> summaries -> tables, figures
"""

from harness.plan import Protocol
from harness.protocol import read_protocol
from harness.runner import run_protocol
from harness.store import append_rows, export, read_rows, rebuild
from harness.tables import report

__all__ = [
    "Protocol",
    "append_rows",
    "export",
    "read_protocol",
    "read_rows",
    "rebuild",
    "report",
    "run_protocol",
]
