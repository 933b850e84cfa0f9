"""Compare methods: run a protocol, store its rows, make tables from them.

The steps of a comparison::

    protocol (plan) -> jobs -> runner (workers, rows) -> store -> summaries -> tables, figures
"""

from polyspan.bench.plan import Protocol
from polyspan.bench.protocol import read_protocol
from polyspan.bench.runner import run_protocol
from polyspan.bench.store import append_row, pack, read_rows
from polyspan.bench.tables import report

__all__ = ["Protocol", "append_row", "pack", "read_protocol", "read_rows", "report", "run_protocol"]
