"""Measure what a method gains from the order of the samples.

Clusters a data set with its samples sorted by class, as they are, and shuffled, and compares the
scores. Public files are mostly sorted by class: a method that sees the order of the samples sees
the classes there, and its scores fall once they are shuffled. The labels sort and score; the
methods never get them.

Some examples:
  polyspan audit --dataset msrc_v1 --method tsvdmsc --set sample_order=file
  polyspan audit --dataset three_sources --orders 10 --plot order.png
"""

import argparse
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyspan.cli.options import add_options, check_options, option, read_options, within
from polyspan.cli.parser import add_command
from polyspan.cli.request import Request, asking, check_request, parse_settings, seed_limits


@dataclass(frozen=True)
class Audited:
    """What is audited."""

    # fmt: off
    dataset: str = option("", "see `polyspan data list`", "NAME")
    method: str | None = option(None, "see `polyspan info` (default: all methods)", "M")
    set: Mapping[str, Any] = option(dict,
        "set a parameter of the method; may be repeated", "NAME=VALUE", collect=parse_settings)
    orders: int = option(5, "runs per order", "N", check=within(2, math.inf, "2 or more"))
    seed: int = option(0, "draws orders and seeds", "N", check=seed_limits)
    plot: str | None = option(None,
        "draw the scores, as .png, .svg or .pdf; replaces the file", "FILE")
    # fmt: on


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    add_options(add_command(subparsers, "audit", __doc__, run), Audited)


def run(args: argparse.Namespace) -> int:
    """Print a row for every method, and the verdicts; 1 if a method could not be run."""
    asked = read_options(Audited, args)
    if not asked.dataset:
        args.usage_error("name a data set: --dataset NAME")
    from polyspan.audit import HEADER, order_effect, plot_effects, table_row
    from polyspan.datasets import load_dataset
    from polyspan.figures import check_figure_path, save_figure

    with asking():
        check_options(asked)
        if asked.plot:
            check_figure_path(asked.plot)
        data = load_dataset(asked.dataset)
        models = build(asked.method, asked.set, data)
    width = max(len(name) for name in models)
    print(f"{data.name}: {len(data.labels)} samples, {data.n_clusters} classes; NMI, mean (std)")
    print(_line(HEADER, width))
    effects, lost = [], 0
    for name, model in models.items():
        try:
            found = order_effect(model, data.views, data.labels, asked.orders, asked.seed)
        except (ValueError, MemoryError) as error:
            print(f"{name:{width}}  not run: {error}", flush=True)
            lost += 1
            continue
        effects.append(found._replace(name=name))
        print(_line(table_row(effects[-1]), width), flush=True)
    print()
    for found in effects:
        if len(models) == 1 or not found.blind:
            print(found.verdict)
    blind = sum(found.blind for found in effects)
    if len(models) > 1 and blind:
        print(f"{blind} of {len(effects)} methods do not gain from the order of the samples.")
    if asked.plot and effects:
        figure: Any = plot_effects(effects).figure
        told = f"{data.name}, {len(data.labels)} samples, in three orders"
        figure.suptitle(told, x=0.01, ha="left", size=10)
        print(f"drew {save_figure(figure, asked.plot)}")
    return 1 if lost else 0


def build(method: str | None, settings: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """The methods to audit, by name; those of a single view with `BestSingleView`.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> list(build("lrr", {"lam": 1.0}, make_subspaces(60, 3)))
    ['LRR, best view']
    """
    from sklearn.utils import get_tags

    from polyspan import METHODS, BestSingleView

    if method is None and settings:
        raise ValueError("--set needs --method: it sets the parameters of one method")
    models: dict[str, Any] = {}
    for name in METHODS if method is None else [method]:
        asked = Request((), data.n_clusters, name, settings)
        model = check_request(asked).set_params(n_clusters=data.n_clusters)
        told = type(model).__name__
        if get_tags(model).single_view and len(data.views) > 1:
            told, model = f"{told}, best view", BestSingleView(model)
        if method is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fits are quiet, too
                model.check(data.views)  # parameters and memory, before any work
        models[told] = model
    return models


def _line(cells: tuple[str, ...], width: int) -> str:
    rest = zip(cells[1:], (15, 15, 15, 17, 6), strict=True)
    return f"{cells[0]:{width}}  " + "  ".join(f"{cell:>{size}}" for cell, size in rest)
