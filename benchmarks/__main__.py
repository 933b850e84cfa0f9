"""`python -m benchmarks run PROTOCOL.toml` and other actions: see harness/command.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # as for every script of this folder

from harness.command import main

if __name__ == "__main__":
    sys.exit(main())
