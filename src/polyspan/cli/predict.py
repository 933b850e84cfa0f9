"""`polyspan predict`: a saved model and files of new samples in, their clusters out."""

import argparse
import textwrap
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.cli.annotated import add_options
from polyspan.cli.files import (
    check_labels_name,
    check_target,
    formula_notes,
    write_labels,
    write_together,
)
from polyspan.cli.messages import fail, note, views_text
from polyspan.cli.options import add_reading_options, reading_choices
from polyspan.cli.request import InputError, asking, in_words
from polyspan.progress import showing

if TYPE_CHECKING:
    import numpy as np

    from polyspan.datasets import MatchedViews

ABSTAIN = 0.01
DEFAULT_OUT = "predicted.csv"


class Predicted(NamedTuple):
    """The result of `predict_files`."""

    data: "MatchedViews"
    labels: "np.ndarray"  # -1 where the model abstains
    placed: Any  # `polyspan.selection.placing.Placed`; None if the model was no consensus


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "predict",
        help="find the clusters of new samples",
        usage="polyspan predict MODEL.npz [VIEW=]FILE [[VIEW=]FILE ...] [options]",
        description="Find the clusters of new samples by a model that `polyspan fit --save` wrote."
        "\n\nThe files are read as by `polyspan fit`: use the same options. A file is the view "
        "that VIEW=\nnames, or that is called like it, or whose features it has; otherwise the "
        "files come in the\norder of the fit. After a consensus, views may be left out. Columns "
        "are matched by name to those\nof the fit; others are left out.",
        epilog="examples:\n"
        "  polyspan predict model.npz new_rna.csv new_protein.csv\n"
        "  polyspan predict model.npz rna=new.npy --out new_labels.csv\n"
        "  polyspan predict model.npz new.h5mu --abstain 0.05\n\n"
        "After a consensus the columns are cluster (-1: unlike all fitted samples); certainty, the "
        "share of\nthe votes for it less that of the second; likeness, the share of the fitted "
        "samples that are as\nfar from their neighbors; and nearest, the cluster also where "
        "cluster is -1. Other methods\ngive the cluster only. Exit codes are those of `polyspan "
        "fit`. If anything goes wrong, nothing\nis written.",
    )
    parser.add_argument("model", metavar="MODEL.npz", help="a model saved by polyspan fit --save")
    parser.add_argument("files", nargs="*", metavar="[VIEW=]FILE", help="new samples")
    parser.add_argument(
        "--abstain",
        type=float,
        metavar="SHARE",
        help="give cluster -1 to samples that are farther from their neighbors than all but this "
        f"share of the fitted samples; 0 never does (default: {ABSTAIN})",
    )
    add_reading_options(parser, new=True)
    add_options(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        default=DEFAULT_OUT,
        help=f"where to write the clusters, .csv or .tsv (default: {DEFAULT_OUT})",
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.set_defaults(run=run, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Predict, as the arguments say."""
    if not args.files:
        args.usage_error("name the files of new samples")
    choices = reading_choices(args) | {"missing": args.missing or "keep"}
    try:
        predict_files(
            args.model,
            args.files,
            abstain=args.abstain,
            out=args.out,
            force=args.force,
            safe_ids=args.safe_ids,
            **choices,
        )
    except InputError as error:
        return fail(error, 2)
    except (MemoryError, RuntimeError, ArithmeticError) as error:
        return fail(in_words(error), 1)
    return 0


def predict_files(
    model: str | Path,
    files: Sequence[str | Path],
    *,
    abstain: float | None = None,
    out: str | Path = DEFAULT_OUT,
    force: bool = False,
    safe_ids: bool = False,
    missing: str = "keep",
    impute: str = "none",
    max_missing: float = 0.2,
    **reading: Any,
) -> Predicted:
    """Find the clusters of the samples in several files; print what was done and write them.

    Parameters
    ----------
    model : path
        What `polyspan.save_model` wrote.
    files : sequence of paths or "VIEW=path"
        The new samples, see `polyspan.io.new_samples.load_new_views`, as for `missing`,
        `impute` and `max_missing`; `reading`: fields of `polyspan.io.parts.Reading`.
    abstain : float, optional
        As in `polyspan.ConsensusClusterer.predict`; None is 0.01, for a consensus.
    out : path, default="predicted.csv"
        The clusters, .csv or .tsv.
    force : bool, default=False
        Replace the file if it exists.
    safe_ids : bool, default=False
        Write ' before ids that a spreadsheet would take for formulas.

    Returns
    -------
    Predicted

    Raises
    ------
    InputError
        Before any work, in one sentence.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from polyspan import GRMSC, save_model
    >>> from polyspan.datasets import make_subspaces
    >>> a, b = make_subspaces(60, 3, random_state=0).views
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fitted = GRMSC(3, random_state=0).fit({"a": a[:50], "b": b[:50]})
    ...     _ = save_model(fitted, f"{folder}/model.npz")
    ...     np.save(f"{folder}/a.npy", a[50:])
    ...     np.save(f"{folder}/b.npy", b[50:])
    ...     files, out = [f"{folder}/a.npy", f"{folder}/b.npy"], f"{folder}/new.csv"
    ...     found = predict_files(f"{folder}/model.npz", files, out=out)
    view ...
    >>> found.labels.shape
    (10,)
    """
    with asking():
        fitted, named = _check(model, files, abstain, Path(out), force)
        with showing("reading"):
            data = _read(fitted, named, reading, missing, impute, max_missing)
        print(views_text(data), flush=True)
        for words in [*data.notes, *formula_notes(data, safe_ids)]:
            note(words)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            found = _predict(fitted, data, ABSTAIN if abstain is None else abstain)
    for one in dict.fromkeys(str(one.message) for one in caught):
        note(one)
    more = {}
    if found.placed is not None:
        more["likeness"] = [f"{one:.4f}" for one in found.placed.likeness]
        more["nearest"] = [str(one) for one in found.placed.labels]
    certainty = None if found.placed is None else found.placed.certainty
    write = partial(
        write_labels, data=data, labels=found.labels, certainty=certainty, more=more, safe=safe_ids
    )
    write_together({Path(out): write}, force=force)
    print(f"\n{_found_text(found)}\n\n{out}  clusters")
    return found


def _check(
    model: str | Path, files: Sequence[str | Path], abstain: float | None, out: Path, force: bool
) -> tuple[Any, dict[Path, str]]:
    """The model, and the files with the views that they are said to hold."""
    from polyspan import ConsensusClusterer, load_model
    from polyspan.inputs.params import real
    from polyspan.io.matched import check_paths

    if not Path(model).is_file():
        raise FileNotFoundError(f"there is no file {model}")
    named = dict(_named(file) for file in files)
    if len(named) < len(files):
        raise ValueError("a file is given twice: name every file once")
    check_paths(list(named))
    check_labels_name(out)
    check_target(out, [model, *named], force)
    if abstain is not None and (wrong := real(0, 1)(abstain)):
        raise ValueError(f"--abstain must be {wrong}, got {abstain!r}")
    fitted = load_model(model)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{model} holds a {type(fitted).__name__}, which cannot predict: fit a consensus, that "
            "is, without --method, or a method such as grmsc"
        )
    if abstain is not None and not isinstance(fitted, ConsensusClusterer):
        raise ValueError(
            f"--abstain is for a consensus, but {model} holds a {type(fitted).__name__}: leave it "
            "out"
        )
    return fitted, named


def _named(file: str | Path) -> tuple[Path, str]:
    """The path in VIEW=path, and the view; "" if none is named.

    Examples
    --------
    >>> _named("rna=new.csv")[1], _named("new.csv")[1]
    ('rna', '')
    """
    name, sign, path = str(file).partition("=")
    return (Path(path), name) if sign and not Path(file).exists() else (Path(file), "")


def _read(
    fitted: Any,
    named: dict[Path, str],
    reading: dict[str, Any],
    missing: str,
    impute: str,
    max_missing: float,
) -> "MatchedViews":
    from polyspan.io.new_samples import load_new_views
    from polyspan.io.parts import Reading

    how = Reading(**reading)
    known = fitted.known_views()
    return load_new_views(
        named, known, how, missing=missing, impute=impute, max_missing=max_missing
    )


def _predict(fitted: Any, data: "MatchedViews", abstain: float) -> Predicted:
    """Clusters by the model; what else a consensus knows."""
    import numpy as np

    from polyspan import ConsensusClusterer

    keys = {str(view.key): view.key for view in fitted.known_views()}
    pairs = zip(data.view_names, data.views, strict=True)
    new = {keys[name]: view for name, view in pairs}
    if not isinstance(fitted, ConsensusClusterer):
        if gone := [name for name in keys if name not in data.view_names]:
            raise ValueError(
                f"{type(fitted).__name__} was fitted on the view {gone[0]!r}, which no file has: "
                "only a consensus predicts without one; give samples that lack it as empty rows"
            )
        return Predicted(data, fitted.predict(new), None)
    placed = fitted.place(new)
    labels = np.where(placed.likeness < abstain, -1, placed.labels)
    return Predicted(data, labels, placed)


def _found_text(found: Predicted) -> str:
    """The clusters and how certain they are, in a few lines."""
    import numpy as np

    names, sizes = np.unique(found.labels[found.labels >= 0], return_counts=True)
    counts = ", ".join(f"{name}: {size}" for name, size in zip(names, sizes, strict=True))
    lines = [f"samples per cluster  {counts or 'none'}"]
    if found.placed is not None:
        n = int(np.sum(found.labels < 0))
        lines.append(
            f"{n} of {len(found.labels)} samples are unlike all fitted ones and got cluster -1"
        )
        certainty = found.placed.certainty
        low = int(np.sum(certainty < 0.5))
        few = f"{low} sample" + "s" * (low != 1)
        lines.append(f"certainty {certainty.mean():.2f} on average, below 0.5 for {few}")
    return "\n".join("\n".join(textwrap.wrap(line, 100)) for line in lines)
