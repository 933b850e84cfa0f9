"""The parser of a command: its help is a docstring, and a wrong name gets those that exist."""

import argparse
from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import Any

from polyspan.runtime.messages import unknown_name


class Parser(argparse.ArgumentParser):
    """A parser that keeps line breaks, takes whole words only, and lists the known commands."""

    commands: Any = None

    def __init__(self, prog: str | None = None, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(prog, allow_abbrev=False, **options)

    def add_subparsers(self, **options: Any) -> Any:
        """Let commands follow; remember which."""
        self.commands = super().add_subparsers(**options)
        return self.commands

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; a wrong command ends the program with those that exist."""
        words: Sequence[str] = [*args] if args is not None else []
        known = () if self.commands is None else self.commands.choices
        if known and words and words[0] not in known and not words[0].startswith("-"):
            unknown = unknown_name(self.commands.metavar.lower(), words[0], known)
            self.exit(2, f"{self.prog}: {unknown}\n")
        return super().parse_known_args(args, namespace)


def split_help(text: str | None) -> dict[str, str]:
    """What --help prints before the options, and after them: the examples and what follows."""
    about, heading, examples = cleandoc(text or "").partition("Some examples:\n")
    return {"description": about.strip(), "epilog": (heading + examples).strip()}


def add_command(
    subparsers: Any, name: str, text: str | None, run: Callable[..., int] | None = None
) -> Any:
    r"""Declare a command by its help: a line, what it does, and after that some examples.

    Examples
    --------
    >>> parser = Parser("zoo")
    >>> text = "Feed a bear.\n\nIt says thanks.\n\nSome examples:\n  zoo feed\n"
    >>> feed = add_command(parser.add_subparsers(metavar="COMMAND"), "feed", text)
    >>> feed.prog, feed.description, feed.epilog
    ('zoo feed', 'Feed a bear.\n\nIt says thanks.', 'Some examples:\n  zoo feed')
    """
    told = split_help(text)
    line = told["description"].partition(".")[0]
    parser = subparsers.add_parser(name, help=line[:1].lower() + line[1:], **told)
    parser.set_defaults(run=run, usage_error=parser.error)
    return parser
