"""`python -m polyspan` is the command `polyspan`."""

import sys

from polyspan.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
