"""Cluster the samples of your own files.

Each file holds one or more views, with samples in rows unless --samples says otherwise.

  .csv .tsv .txt          a table; also .csv.gz and so on
  .parquet .xlsx          a table; every sheet of a workbook is a view
  .rds .rda               R: every matrix or data frame is a view
  .npy .mtx .mtx.gz       a matrix (NumPy, MatrixMarket)
  .npz .mat               every matrix is a view
  .h5ad .h5mu             AnnData, and MuData: every modality is a view

Samples are matched by id if every file has ids: the column named by --id; or the first
column, if it is called id, sample, patient_id, name, ... or holds words that are all
different; or another column with such a name; or the index that pandas wrote; or the
obs_names. Otherwise row 1 is matched with row 1, and so on.

Without --method, the clusters are the consensus of many methods and settings. No labels
are needed.

Some examples:
  polyspan fit rna.csv protein.csv --report report.html --save model.npz
  polyspan fit rna.csv protein.parquet --clusters 5 --missing drop --out mine.csv
  polyspan fit genes.csv lipids.csv --samples columns --impute median
  polyspan fit cells.h5mu --clusters 8 --method grmsc --set lam1=10
  polyspan fit rna.csv protein.csv --budget 600 --device cuda
  polyspan fit rna.csv protein.csv --report r.html --annotate clinical.csv
  polyspan fit --dataset gbm --survival time,status --report gbm.html
  polyspan fit --repeat labels.json --out again.csv

The labels file has the columns sample, cluster and, for the consensus, certainty. A .json file
with all settings is written next to it. Exit codes: 0 success, 1 the fit failed, 2 the request
or a file is wrong, 130 interrupted. If anything goes wrong, nothing is written.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyspan.cli.files import check_targets, formula_notes, sha256, write_together, writers_of
from polyspan.cli.known import read_beside, read_dataset
from polyspan.cli.messages import files_text, found_text, note, say, views_text
from polyspan.cli.options import add_options, given, read_options
from polyspan.cli.parser import add_command
from polyspan.cli.record import (
    compare,
    describe_run,
    earlier_request,
    free_place,
    is_edited,
    read_settings,
)
from polyspan.cli.request import (
    Outputs,
    Reading,
    Request,
    asking,
    check_data,
    check_request,
    reading,
)
from polyspan.cli.work import Found, cluster
from polyspan.progress import showing

if TYPE_CHECKING:
    from polyspan.datasets import MatchedViews


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = add_command(subparsers, "fit", __doc__, run)
    parser.usage = (
        "polyspan fit FILE [FILE ...] [options]\n"
        "       polyspan fit --dataset NAME [options]\n"
        "       polyspan fit --repeat labels.json [--out FILE] [--report FILE] [--force]"
    )
    add_options(parser, Request, Outputs)
    parser.add_argument(
        "--repeat",
        metavar="LABELS.json",
        help="repeat the run that wrote these settings, and say whether the labels are the same; "
        "writes LABELS-again.csv unless --out names another file or --force replaces LABELS.csv",
    )


def run(args: argparse.Namespace) -> int:
    """Fit files or repeat a run, as the arguments say."""
    asked = given(Request, args)
    if args.dataset and {"files", *(about.name for about in fields(Reading))} & set(asked):
        args.usage_error("--dataset needs no files, and no options for reading them")
    if args.repeat and asked:
        extra = next(iter(asked.values()))
        args.usage_error(f"--repeat takes all settings from {args.repeat}: leave {extra} out")
    if not (args.repeat or args.files or args.dataset):
        args.usage_error("name the files to cluster")
    outputs = read_options(Outputs, args)
    if args.repeat:
        found = repeat(args.repeat, outputs, command=args.command)
    else:
        found = fit_files(read_options(Request, args), outputs, command=args.command)
    return 130 if found.partial else 0


def fit_files(
    request: Request,
    outputs: Outputs,
    *,
    command: str = "",
    earlier: Mapping[str, Any] | None = None,
) -> Found:
    r"""Cluster the samples of several files; print what was done and write the labels.

    Parameters
    ----------
    request : Request
        What to cluster, and how.
    outputs : Outputs
        What to write. The settings are written next to the labels, with the suffix .json.
    command : str, optional
        The command line, for the settings and the report.
    earlier : dict, optional
        The settings of the run that this one repeats.

    Returns
    -------
    Found
        The fitted estimator, with labels and certainty, and what else is known.

    Raises
    ------
    InputError
        Before any work, in one sentence.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from polyspan.datasets import make_subspaces
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, view in zip("ab", make_subspaces(60, 3, random_state=0).views):
    ...         np.save(f"{folder}/{name}.npy", view)
    ...     request = Request([f"{folder}/a.npy", f"{folder}/b.npy"], clusters=3, method="grmsc")
    ...     out = f"{folder}/labels.csv"
    ...     found = fit_files(request, Outputs(out))
    ...     lines = Path(out).read_text().splitlines()
    view ...
    >>> found.labels.shape, lines[0]
    ((60,), 'row,cluster')
    """
    with asking():
        if request.dataset is None:
            _check_readable(request.files)  # what is read comes before what is written
        targets = check_targets(outputs, request.files)
        model = check_request(request)
        data, sums = _read(request)
        check_data(data, model, request.clusters)
        more, told = read_beside(outputs, data, request.dataset) if outputs.report else ({}, [])
    say(views_text(data))
    for words in [*data.notes, *told, *formula_notes(data, outputs.safe_ids)]:
        note(words)
    found = cluster(request, data, model, outputs.keep_partial)
    for words in found.complaints:
        note(words)
    settings = describe_run(request, data, found, sums=sums, targets=targets, command=command)
    writers = writers_of(targets, request.files, data, found, settings, outputs.safe_ids, more)
    write_together(writers, force=outputs.force)
    say(f"\n{found_text(found, verbose=outputs.verbose)}\n")
    say(files_text(targets, outputs.figures))
    if earlier is not None:
        compare(earlier, settings)
    return found


def repeat(path: str | Path, outputs: Outputs, *, command: str = "") -> Found:
    """Repeat the run whose settings are in a .json file beside its labels.

    Prints which files have changed since then, and whether the labels are the same; raises if they
    are not, or if those of that run have been changed since, after all is written. Without ``out``
    the labels are written next to those of the earlier run, under a free name
    (``labels-again.csv``), or replace them if ``force`` is set.
    """
    path = Path(path)
    with asking():
        earlier = read_settings(path)
        request = earlier_request(path, earlier)
        earlier["edited"] = is_edited(path.parent / earlier["labels"], earlier)
    if outputs.out is None:
        outputs = replace(outputs, out=free_place(path.parent / earlier["labels"], outputs.force))
    return fit_files(request, outputs, command=command, earlier=earlier)


def _check_readable(files: Sequence[str | Path]) -> None:
    from polyspan.io.matched import check_paths

    for path in map(Path, files):
        if "=" in path.name and not path.exists():
            raise FileNotFoundError(
                f"there is no file {path}: if it is a parameter, use --set {path}"
            )
    check_paths([Path(file) for file in files])


def _read(request: Request) -> tuple["MatchedViews", list[str]]:
    """The views, and the checksums of their files."""
    from polyspan.datasets import load_views

    with showing("reading"):
        if request.dataset is not None:
            return read_dataset(request.dataset), []
        data = load_views(request.files, **reading(request))
        return data, [sha256(Path(file)) for file in request.files]
