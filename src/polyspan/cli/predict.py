"""Find the clusters of new samples.

The model is one that `polyspan fit --save` wrote. The files are read as by `polyspan fit`: use
the same options. A file is the view that VIEW= names, or that is called like it, or whose
features it has; otherwise the files come in the order of the fit. After a consensus, views may
be left out. Columns are matched by name to those of the fit; others are left out.

Some examples:
  polyspan predict model.npz new_rna.csv new_protein.csv
  polyspan predict model.npz rna=new.npy --out new_labels.csv
  polyspan predict model.npz new.h5mu --abstain 0.05

After a consensus the columns are cluster (-1: unlike all fitted samples); certainty, the share of
the votes for it less that of the second; likeness, the share of the fitted samples that are as
far from their neighbors; and nearest, the cluster also where cluster is -1. Other methods
give the cluster only. Exit codes are those of `polyspan fit`. If anything goes wrong, nothing
is written.
"""

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from polyspan.cli.files import (
    check_labels_name,
    check_target,
    formula_notes,
    write_labels,
    write_together,
)
from polyspan.cli.messages import certainty_lines, note, say, sizes_lines, views_text, wrapped
from polyspan.cli.options import add_options, check_options, option, read_options, within
from polyspan.cli.parser import add_command
from polyspan.cli.request import IMPUTE, Reading, Writing, asking, reading
from polyspan.progress import showing

if TYPE_CHECKING:
    import numpy as np

    from polyspan.datasets import MatchedViews


class Predicted(NamedTuple):
    """The result of `predict_files`."""

    data: "MatchedViews"
    labels: "np.ndarray"  # -1 where the model abstains
    placed: Any  # `polyspan.selection.placing.Placed`; None if the model was no consensus


@dataclass(frozen=True, kw_only=True)
class NewSamples(Reading, Writing):
    """What is predicted. Files are read as by a fit, unless said here."""

    # fmt: off
    model: str | Path = option("", "a model that polyspan fit wrote", "MODEL.npz", flag="model")
    files: Sequence[str | Path] = option((), "new samples", "[VIEW=]FILE", flag="files")
    abstain: float | None = option(None,
        "give cluster -1 to samples that are farther from their neighbors than all but this share "
        "of the fitted samples; 0 never does (default: 0.01)", "SHARE",
        check=within(0, 1, "a finite number >= 0 and <= 1"))
    missing: Literal["fail", "drop", "keep"] = option("keep",
        "samples that lack a view: stop and name them, drop them, or keep them")
    impute: Literal["median", "none"] = option("none",
        "fill in scattered missing values by the medians of the fitted samples")
    max_missing: float = option(0.2,
        "with --impute: samples that lack more than this share of a view's values count as lacking "
        "the view", "SHARE", needs=IMPUTE)
    out: str | Path = option("predicted.csv", "where to write the clusters, .csv or .tsv", "FILE")
    # fmt: on


ABSTAIN = 0.01


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = add_command(subparsers, "predict", __doc__, run)
    parser.usage = "polyspan predict MODEL.npz [VIEW=]FILE [[VIEW=]FILE ...] [options]"
    add_options(parser, NewSamples)


def run(args: argparse.Namespace) -> int:
    """Predict, as the arguments say."""
    if not args.files:
        args.usage_error("name the files of new samples")
    predict_files(read_options(NewSamples, args))
    return 0


def predict_files(asked: NewSamples) -> Predicted:
    """Find the clusters of the samples in several files; print what was done and write them.

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
    ...     asked = NewSamples(model=f"{folder}/model.npz", files=files, out=out)
    ...     found = predict_files(asked)
    view ...
    >>> found.labels.shape
    (10,)
    """
    with asking():
        fitted, named = _check(asked)
        with showing("reading"):
            data = _read(fitted, named, asked)
        say(views_text(data))
        for words in [*data.notes, *formula_notes(data, asked.safe_ids)]:
            note(words)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            found = _predict(fitted, data, ABSTAIN if asked.abstain is None else asked.abstain)
    for words in dict.fromkeys(str(one.message) for one in caught):
        note(words)
    more, certainty = {}, None
    if found.placed is not None:
        more["likeness"] = [f"{one:.4f}" for one in found.placed.likeness]
        more["nearest"] = [str(one) for one in found.placed.labels]
        certainty = found.placed.certainty
    write = partial(
        write_labels,
        data=data,
        labels=found.labels,
        certainty=certainty,
        more=more,
        safe=asked.safe_ids,
    )
    write_together({Path(asked.out): write}, force=asked.force)
    say(f"\n{_found_text(found)}\n\n{asked.out}  clusters")
    return found


def _check(asked: NewSamples) -> tuple[Any, dict[Path, str]]:
    """The model, and the files with the views that they are said to hold."""
    from polyspan import ConsensusClusterer, load_model
    from polyspan.io.matched import check_paths

    if not Path(asked.model).is_file():
        raise FileNotFoundError(f"there is no file {asked.model}")
    named = dict(_named(file) for file in asked.files)
    if len(named) < len(asked.files):
        raise ValueError("a file is given twice: name every file once")
    check_paths(list(named))
    check_labels_name(Path(asked.out))
    check_target(Path(asked.out), [asked.model, *named], asked.force)
    check_options(asked)
    fitted = load_model(asked.model)
    kind = type(fitted).__name__
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{asked.model} holds a {kind}, which cannot predict: fit a consensus, that is, "
            "without --method, or a method such as grmsc"
        )
    if asked.abstain is not None and not isinstance(fitted, ConsensusClusterer):
        raise ValueError(
            f"--abstain is for a consensus, but {asked.model} holds a {kind}: leave it out"
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


def _read(fitted: Any, named: dict[Path, str], asked: NewSamples) -> "MatchedViews":
    from polyspan.io import new_samples, parts

    how = reading(asked)
    gaps = {name: how.pop(name) for name in ("id_trim", "missing", "impute", "max_missing")}
    return new_samples.load_new_views(named, fitted.known_views(), parts.Reading(**how), **gaps)


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
    lines = sizes_lines(found.labels)
    if found.placed is not None:
        n, of = int((found.labels < 0).sum()), len(found.labels)
        lines.append(f"{n} of {of} samples are unlike all fitted ones and got cluster -1")
        lines += certainty_lines(found.placed.certainty)
    return wrapped(lines)
