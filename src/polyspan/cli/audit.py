"""`polyspan audit`: what a method gains from the order of the samples."""

import argparse
import warnings
from typing import Any

from polyspan.cli.messages import fail


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "audit",
        help="measure what a method gains from the order of the samples",
        description="Cluster a data set with its samples sorted by class, as they are, and "
        "shuffled, and\ncompare the scores. Public files are mostly sorted by class: a method that "
        "sees the order\nof the samples sees the classes there, and its scores fall once they are "
        "shuffled.\nThe labels sort and score; the methods never get them.",
        epilog="examples:\n"
        "  polyspan audit --dataset msrc_v1 --method tsvdmsc --set sample_order=file\n"
        "  polyspan audit --dataset three_sources --orders 10 --plot order.png",
    )
    parser.add_argument("--dataset", required=True, metavar="NAME", help="see `polyspan data list`")
    parser.add_argument("--method", metavar="M", help="see `polyspan info` (default: all methods)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter of the method; may be repeated",
    )
    parser.add_argument(
        "--orders", type=int, default=5, metavar="N", help="runs per order (default: 5)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="draws orders and seeds (default: 0)"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the scores, as .png, .svg or .pdf; replaces the file"
    )
    parser.set_defaults(run=run, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Print a row for every method, and the verdicts; 1 if a method could not be run."""
    from polyspan.cli.request import InputError, asking

    if args.orders < 2:
        args.usage_error(f"--orders must be 2 or more, got {args.orders}")
    if not 0 <= args.seed < 2**32:
        args.usage_error(f"--seed must be from 0 to 2**32 - 1, got {args.seed}")
    from polyspan.audit import HEADER, order_effect, plot_effects, table_row
    from polyspan.datasets import load_dataset
    from polyspan.figures import check_figure_path, save_figure

    data = load_dataset(args.dataset)
    try:
        with asking():
            if args.plot:
                check_figure_path(args.plot)
            models = build(args.method, args.set, data)
    except InputError as error:
        return fail(error, 2)
    width = max(len(name) for name in models)
    print(f"{data.name}: {len(data.labels)} samples, {data.n_clusters} classes; NMI, mean (std)")
    print(_line(HEADER, width))
    effects, lost = [], 0
    for name, model in models.items():
        try:
            found = order_effect(model, data.views, data.labels, args.orders, args.seed)
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
    if args.plot and effects:
        figure: Any = plot_effects(effects).figure
        told = f"{data.name}, {len(data.labels)} samples, in three orders"
        figure.suptitle(told, x=0.01, ha="left", size=10)
        print(f"drew {save_figure(figure, args.plot)}")
    return 1 if lost else 0


def build(method: str | None, settings: list[str], data: Any) -> dict[str, Any]:
    """The methods to audit, by name; those of a single view with `BestSingleView`.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> list(build("lrr", ["lam=1"], make_subspaces(60, 3)))
    ['LRR, best view']
    """
    from sklearn.utils import get_tags

    from polyspan import METHODS, BestSingleView
    from polyspan.cli.request import Request, check_request, parse_settings

    if method is None and settings:
        raise ValueError("--set needs --method: it sets the parameters of one method")
    models: dict[str, Any] = {}
    for name in METHODS if method is None else [method]:
        asked = Request((), data.n_clusters, name, parse_settings(settings))
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
