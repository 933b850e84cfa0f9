"""Multi-view subspace clustering: several tables of the same samples in, one clustering out.

Some examples:
  polyspan demo              see it work, in half a minute
  polyspan fit a.csv b.csv   cluster the samples of your own files
  polyspan predict model.npz new_a.csv new_b.csv
                             find the clusters of new samples, after fit --save
  polyspan data list         list the data sets, and which of them are here
  polyspan data fetch ngs    download the data set ngs
  polyspan info              versions, machine, folders, methods
  polyspan audit --dataset ngs --method gmc
                             what a method gains from the order of the samples

See `polyspan COMMAND --help` for more about a command.
"""

import argparse
import io
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NoReturn

from polyspan import __version__
from polyspan.cli import audit, data, demo, fit, info, predict
from polyspan.cli.messages import fail
from polyspan.cli.options import in_shell
from polyspan.cli.parser import Parser, split_help
from polyspan.cli.request import InputError, Request, in_words
from polyspan.runtime.messages import spelling


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Examples
    --------
    >>> main(["data", "check", "digits"])
    digits  ok: built in, 1797 samples, 3 views, 10 classes
    0
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed by whoever started the program
            setattr(sys, name, io.StringIO())
    parser = _parser()
    args, rest = parser.parse_known_args(sys.argv[1:] if argv is None else argv)
    # argparse accepts files only before the first option; here they may also come after it.
    if rest and hasattr(args, "files") and not any(word.startswith("-") for word in rest):
        args.files += rest
    elif rest:
        getattr(args, "usage_error", parser.error)(f"unrecognized arguments: {' '.join(rest)}")
    args.command = shlex.join(["polyspan", *(sys.argv[1:] if argv is None else argv)])
    try:
        with _terminating(), spelling(partial(in_shell, Request)):
            code = args.run(args)
            sys.stdout.flush()  # a reader that is gone is noticed here at the latest
            return code
    except (BrokenPipeError, SystemExit) as error:
        # Nobody reads on, as after `polyspan fit ... | head`; rich exits when it notices.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        return _end_quietly()
    except InputError as error:
        return fail(error, 2)
    except (ValueError, OSError, ImportError, MemoryError, RuntimeError, ArithmeticError) as error:
        from polyspan.datasets.registry import UnknownDatasetError

        return fail(in_words(error), 2 if isinstance(error, UnknownDatasetError) else 1)
    except KeyboardInterrupt as error:
        told, code = ("interrupted", 130)
        if isinstance(error, _Terminated) or isinstance(error.__context__, _Terminated):
            told, code = ("terminated", 143)
        return fail(error if error.args else told, code)


def _end_quietly() -> int:
    """Send what is still to be printed nowhere; the exit code is that of SIGPIPE, as is usual."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a stream of a test has no number
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return 141


class _Terminated(KeyboardInterrupt):
    """SIGTERM, which schedulers send when the time is up: work ends as after Ctrl-C."""


@contextmanager
def _terminating() -> Iterator[None]:
    """Raise SIGTERM as an exception in the block, so that nothing is left half-written."""

    def stop(number: int, frame: object) -> NoReturn:
        raise _Terminated

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may do this
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    parser = Parser("polyspan", **split_help(__doc__))
    parser.add_argument("--version", action="version", version=f"polyspan {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (demo, fit, predict, data, audit, info):
        command.add(subparsers)
    return parser
