"""Options of a command: each is declared once, as a field of a dataclass.

A field holds the option's name, type, default, help and check. The parser, the object that the
command works with, the settings file of a run and `--repeat` follow from it:

    seed: int = option(0, "random seed", "N", check=within(0, 9, "from 0 to 9"))

`str | None` may be left out, `Sequence[str]` may be repeated, a `Literal` has choices,
`bool | None` is yes or no, and `bool` is a flag.
"""

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from polyspan.runtime.messages import unknown_name

Check = Callable[[Any], str | None]


def option(
    default: Any,
    help: str,
    metavar: str | None = None,
    *,
    flag: str = "",
    parse: Callable[[str], Any] | None = None,
    collect: Callable[[Any], Any] | None = None,
    check: Check | None = None,
    needs: tuple[str, str] | None = None,
) -> Any:
    """Declare an option.

    Parameters
    ----------
    default : object
        Its default, or a type that makes it.
    help : str
        What ``--help`` says; the default is added.
    metavar : str, optional
        What stands for the value in ``--help``.
    flag : str, optional
        How it is typed, if that is not ``--`` and the name of the field; without ``--`` it is a
        positional argument.
    parse : callable, optional
        Makes a value of a word, where the type does not.
    collect : callable, optional
        Makes the value of all words that were given, where they may be several.
    check : callable, optional
        Says what a value must be, if it is wrong; otherwise None.
    needs : (str, str), optional
        Another field without which the option has no meaning, and how to say so.
    """
    about = {"help": help, "metavar": metavar, "flag": flag, "parse": parse, "collect": collect,
             "check": check, "needs": needs}  # fmt: skip
    if isinstance(default, type):
        return field(default_factory=default, metadata=about)
    return field(default=default, metadata=about)


def within(low: float, high: float, words: str) -> Check:
    """Make a check that a number is between two bounds; ``words`` say so.

    Examples
    --------
    >>> within(0, 9, "from 0 to 9")(12)
    'from 0 to 9'
    """
    return lambda value: None if low <= value <= high else words


def flag(about: "Field[Any]") -> str:
    """How the option of a field is typed."""
    return about.metadata["flag"] or f"--{about.name.replace('_', '-')}"


def unset(about: "Field[Any]") -> Any:
    """The value of an option that is not given."""
    return about.default if about.default_factory is MISSING else about.default_factory()


def add_options(parser: argparse.ArgumentParser, *tables: type) -> None:
    """Declare the options of these dataclasses, in a group for each and its bases."""
    seen: set[str] = set()
    for cls in (cls for table in tables for cls in table.__mro__[:-1]):
        group = parser.add_argument_group((cls.__doc__ or "").partition(".")[0].lower())
        known = {about.name: about for about in fields(cls)}
        for name in cls.__annotations__:
            if name not in seen:
                how = _argument(parser, known[name])
                if flag(known[name]) != name:  # a positional argument is called as it is typed
                    how |= {"dest": name, "default": None}  # None: not given
                group.add_argument(flag(known[name]), **how)
        seen |= set(cls.__annotations__)


def _argument(parser: argparse.ArgumentParser, about: "Field[Any]") -> dict[str, Any]:
    """The declaration of an option for argparse."""
    how: dict[str, Any] = {"help": about.metadata["help"].replace("%", "%%")}
    if about.type is bool:
        return how | {"action": "store_true"}
    how["metavar"] = about.metadata["metavar"]
    if get_origin(about.type) in (Sequence, Mapping):
        return how | ({"nargs": "*"} if flag(about) == about.name else {"action": "append"})
    if (usual := unset(about)) not in (None, ""):
        how["help"] += f" (default: {usual})"
    choices: dict[str, Any] = {word: word for word in _words(about.type)}
    if about.type == bool | None:
        choices = {"yes": True, "no": False}
    if about.metadata["parse"] is not None:
        how["type"] = about.metadata["parse"]
    elif choices:
        how["metavar"] = f"{{{','.join(choices)}}}"
        how["type"] = _one_of(parser, flag(about), choices)
    else:
        how["type"] = _kinds(about.type)[0]
    return how


def _one_of(
    parser: argparse.ArgumentParser, name: str, values: Mapping[str, Any]
) -> Callable[[str], Any]:
    """Make a value of a word; another word ends the program with those that exist."""

    def read(word: str) -> Any:
        if word not in values:
            unknown = unknown_name(f"choice of {name}", word, values)
            parser.exit(2, f"{parser.prog}: {unknown}\n")
        return values[word]

    return read


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types in a union, or the type itself."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _words(hint: Any) -> list[str]:
    """The words of a literal type, or of those in a union."""
    literals = [kind for kind in _kinds(hint) if get_origin(kind) is Literal]
    return [word for kind in literals for word in get_args(kind)]


def given(table: type, args: argparse.Namespace) -> dict[str, str]:
    """The fields whose options were given, and how these are typed."""
    named = {about.name: flag(about) for about in fields(table)}
    return {name: word for name, word in named.items() if getattr(args, name) not in (None, [])}


def read_options(table: Any, args: argparse.Namespace) -> Any:
    """What the arguments say, with the defaults filled in; an option without effect is refused."""
    values, known = {}, {about.name: about for about in fields(table)}
    for name in given(table, args):
        collect = known[name].metadata["collect"]
        values[name] = collect(getattr(args, name)) if collect else getattr(args, name)
    for name in values:
        other, words = known[name].metadata["needs"] or (name, "")
        if values.get(other, unset(known[other])) == unset(known[other]) and words:
            args.usage_error(f"{flag(known[name])} {words}")
    return table(**values)


def check_options(options: Any) -> None:
    """Refuse a value that its option cannot have."""
    for about in fields(options):
        value, check = getattr(options, about.name), about.metadata["check"]
        if check is not None and value is not None and (wrong := check(value)):
            raise ValueError(f"{flag(about)} must be {wrong}, got {value!r}")


def holds(hint: Any, value: Any) -> bool:
    """Whether a value from a settings file is of a type; true and false are no numbers.

    Examples
    --------
    >>> holds(int | None, 3), holds(int | None, True), holds(Sequence[str], ["a", 1])
    (True, False, False)
    """
    if len(_kinds(hint)) > 1:
        return any(holds(kind, value) for kind in _kinds(hint))
    origin = get_origin(hint) or hint
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin is Sequence:
        return isinstance(value, list) and all(isinstance(word, str) for word in value)
    return type(value) in {float: (int, float), Mapping: (dict,)}.get(origin, (origin,))


def in_shell(table: type, name: str, *values: Any) -> str:
    """How a parameter of Python is typed as an option.

    Examples
    --------
    >>> from polyspan.cli.request import Request
    >>> in_shell(Request, "header", True), in_shell(Request, "drop", ["a", "b c"])
    ('--header yes', "--drop a --drop 'b c'")
    >>> in_shell(Request, "id_trim", "-01A$")
    "--id-trim='-01A$'"
    >>> in_shell(Request, "force", True), in_shell(Request, "max_missing")
    ('--force', '--max-missing')
    """
    known = {about.name: about for about in fields(table)}
    if name not in known:
        return f"--{name.replace('_', '-')}"
    typed = flag(known[name])
    words: list[str] = []
    for value in values:
        several = value if isinstance(value, list) else [value]
        words += [("no", "yes")[one] if isinstance(one, bool) else str(one) for one in several]
    # After a blank, a word that begins with - would be taken for another option.
    typed_words = (f"{typed}{' ='[word[:1] == '-']}{shlex.quote(word)}" for word in words)
    return " ".join(typed_words) or typed
