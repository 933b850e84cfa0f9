"""`polyspan fit`: files in; labels, the settings of the run, and a report out.

The request is checked before any work (`request`), the work is done (`work`), and all files are
written together at the end, or none.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.cli.annotated import add_options
from polyspan.cli.files import check_targets, formula_notes, sha256, write_together
from polyspan.cli.known import NOTHING, Beside, add_known_options, beside, read_beside, read_dataset
from polyspan.cli.messages import fail, files_text, found_text, note, views_text
from polyspan.cli.options import READING, add_reading_options, reading_choices
from polyspan.cli.record import compare, describe_run, earlier_request, free_place, read_settings
from polyspan.cli.request import (
    InputError,
    Request,
    asking,
    check_data,
    check_request,
    in_words,
    parse_settings,
)
from polyspan.cli.work import cluster
from polyspan.cli.writers import writers_of
from polyspan.progress import showing

if TYPE_CHECKING:
    import numpy as np

    from polyspan.datasets import MatchedViews


class Fitted(NamedTuple):
    """The result of `fit_files`."""

    data: "MatchedViews"
    labels: "np.ndarray"
    certainty: "np.ndarray | None"
    estimator: Any
    settings: dict[str, Any]  # what the settings file holds


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "fit",
        help="cluster the samples of your own files",
        usage="polyspan fit FILE [FILE ...] [options]\n"
        "       polyspan fit --dataset NAME [options]\n"
        "       polyspan fit --repeat labels.json [--out FILE] [--report FILE] [--force]",
        description="Cluster the samples of your own files. Each file holds one or more views,\n"
        "with samples in rows unless --samples says otherwise.\n\n"
        "  .csv .tsv .txt          a table; also .csv.gz and so on\n"
        "  .parquet .xlsx          a table; every sheet of a workbook is a view\n"
        "  .rds .rda               R: every matrix or data frame is a view\n"
        "  .npy .mtx .mtx.gz       a matrix (NumPy, MatrixMarket)\n"
        "  .npz .mat               every matrix is a view\n"
        "  .h5ad .h5mu             AnnData, and MuData: every modality is a view\n\n"
        "Samples are matched by id if every file has ids: the column named by --id; or the first\n"
        "column, if it is called id, sample, patient_id, name, ... or holds words that are all\n"
        "different; or another column with such a name; or the index that pandas wrote; or the\n"
        "obs_names. Otherwise row 1 is matched with row 1, and so on.\n\n"
        "Without --method, the clusters are the consensus of many methods and settings. No labels\n"
        "are needed.",
        epilog="examples:\n"
        "  polyspan fit rna.csv protein.csv --report report.html --save model.npz\n"
        "  polyspan fit rna.csv protein.parquet --clusters 5 --missing drop --out mine.csv\n"
        "  polyspan fit genes.csv lipids.csv --samples columns --impute median\n"
        "  polyspan fit cells.h5mu --clusters 8 --method grmsc --set lam1=10\n"
        "  polyspan fit rna.csv protein.csv --budget 600 --device cuda\n"
        "  polyspan fit rna.csv protein.csv --report r.html --annotate clinical.csv\n"
        "  polyspan fit --dataset gbm --survival time,status --report gbm.html\n"
        "  polyspan fit --repeat labels.json --out again.csv\n\n"
        "The labels file has the columns sample, cluster and, for the consensus, certainty. A "
        ".json file\nwith all settings is written next to it. Exit codes: 0 success, 1 the fit "
        "failed, 2 the request\nor a file is wrong. If anything goes wrong, nothing is written.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="a file with one or more views")
    parser.add_argument(
        "--clusters",
        type=_clusters,
        metavar="N",
        help="number of clusters, or auto (default: auto)",
    )
    parser.add_argument(
        "--method", metavar="NAME", help="run one method, such as grmsc; `polyspan info` lists them"
    )
    parser.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        help="set a parameter of the method; may be repeated",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="random seed (default: 0)")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="start no new member of the consensus after this time; the labels then depend on the "
        "speed of the machine (default: run all members)",
    )
    parser.add_argument(
        "--device",
        metavar="D",
        help="where to compute, such as cuda (a GPU; needs torch), for methods that support it",
    )
    add_reading_options(parser)
    add_options(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="where to write the labels, .csv or .tsv, or a copy of the .h5ad or .h5mu file with "
        "the labels in it (default: labels.csv)",
    )
    parser.add_argument("--report", metavar="FILE.html", help="also write a report")
    parser.add_argument(
        "--save", metavar="MODEL.npz", help="also save the model, for `polyspan predict`"
    )
    add_known_options(parser)
    parser.add_argument("--force", action="store_true", help="replace output files that exist")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also print the members of the consensus, by family and scaling",
    )
    parser.add_argument(
        "--repeat",
        metavar="LABELS.json",
        help="repeat the run that wrote these settings, and say whether the labels are the same; "
        "writes LABELS-again.csv unless --out names another file or --force replaces LABELS.csv",
    )
    parser.set_defaults(run=run, usage_error=parser.error)


def _clusters(text: str) -> int | str:
    if text.lower() == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number or auto, got {text!r}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Fit files or repeat a run, as the arguments say."""
    chosen = ["clusters", "method", "set", "seed", *READING, "budget", "device", "dataset"]
    given = [name for name in chosen if getattr(args, name) is not None]
    if args.dataset and (args.files or any(name in READING for name in given)):
        args.usage_error("--dataset needs no files, and no options for reading them")
    if args.repeat and (args.files or given):
        extra = f"--{given[0].replace('_', '-')}" if given else "files"
        args.usage_error(f"--repeat takes all settings from {args.repeat}: leave {extra} out")
    if not (args.repeat or args.files or args.dataset):
        args.usage_error("name the files to cluster")
    written = {"report": args.report, "force": args.force, "command": args.command}
    written |= {"safe_ids": args.safe_ids, "save": args.save, "shown": beside(args)}
    written |= {"verbose": args.verbose}
    choices = reading_choices(args)
    try:
        if args.repeat:
            repeat(args.repeat, out=args.out, **written)
        else:
            fit_files(
                args.files,
                clusters=None if args.clusters == "auto" else args.clusters,
                method=args.method,
                params=parse_settings(args.set or []),
                seed=args.seed or 0,
                **choices,
                budget=args.budget,
                device=args.device,
                dataset=args.dataset,
                out=args.out or "labels.csv",
                **written,
            )
    except InputError as error:
        return fail(error, 2)
    except (MemoryError, RuntimeError, ArithmeticError) as error:
        return fail(in_words(error), 1)
    return 0


def fit_files(
    files: Sequence[str | Path],
    *,
    clusters: int | None = None,
    method: str | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    id: str | Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "fail",
    header: bool | None = None,
    samples: str | None = None,
    keep: Sequence[str] = (),
    impute: str = "none",
    max_missing: float = 0.2,
    budget: float | None = None,
    device: str | None = None,
    obsm: Sequence[str] = (),
    layers: Sequence[str] = (),
    dataset: str | None = None,
    out: str | Path = "labels.csv",
    report: str | Path | None = None,
    save: str | Path | None = None,
    shown: Beside = NOTHING,
    force: bool = False,
    safe_ids: bool = False,
    verbose: bool = False,
    command: str = "",
    earlier: Mapping[str, Any] | None = None,
) -> Fitted:
    r"""Cluster the samples of several files; print what was done and write the labels.

    Parameters
    ----------
    files : sequence of paths
        One view or several each, see `polyspan.datasets.load_views`, as for `id`, `drop`, `keep`,
        `missing`, `header`, `samples`, `impute`, `max_missing`, `obsm` and `layers`.
    clusters : int, optional
        Number of clusters; estimated from the data when None.
    method : str, optional
        A name of `polyspan.METHODS`. Without it, a `polyspan.ConsensusClusterer` is fitted.
    params : dict, optional
        Parameters of the method; the others have their defaults.
    seed : int, default=0
        Random seed.
    budget : float, optional
        Seconds after which the consensus starts no new member. The labels then depend on the speed
        of the machine.
    device : str, optional
        Where to compute, such as ``"cuda"``, for methods that support it.
    dataset : str, optional
        A published data set, see `polyspan.datasets.load_dataset`, instead of files.
    out : path, default="labels.csv"
        The labels, .csv or .tsv; .h5ad or .h5mu is a copy of the file of that kind that is read,
        with the labels in it, see `polyspan.annotate`. The settings are written next to it, with
        the suffix .json.
    report, save : path, optional
        An HTML report, and the fitted model, .npz, see `polyspan.save_model`.
    shown : Beside
        What the report shows besides: annotations, survival, a folder for figures.
    force : bool, default=False
        Replace these files if they exist.
    safe_ids : bool, default=False
        Write ' before ids that a spreadsheet would take for formulas.
    verbose : bool, default=False
        Also print the members of the consensus.
    command : str, optional
        The command line, for the settings and the report.
    earlier : dict, optional
        The settings of the run that this one repeats.

    Returns
    -------
    Fitted
        Views, labels, certainty (if known), fitted estimator and settings.

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
    ...     files = [f"{folder}/a.npy", f"{folder}/b.npy"]
    ...     out = f"{folder}/labels.csv"
    ...     found = fit_files(files, clusters=3, method="grmsc", out=out)
    ...     lines = Path(out).read_text().splitlines()
    view ...
    >>> found.labels.shape, lines[0]
    ((60,), 'row,cluster')
    """
    request = Request(
        files=list(files),
        clusters=clusters,
        method=method,
        params=dict(params or {}),
        seed=seed,
        id=[id] if isinstance(id, str) else list(id),
        drop=list(drop),
        missing=missing,
        header=header,
        samples=samples,
        keep=list(keep),
        impute=impute,
        max_missing=max_missing,
        budget=budget,
        device=device,
        obsm=list(obsm),
        layers=list(layers),
        dataset=dataset,
    )
    with asking():
        if dataset is None:
            _check_readable(files)  # what is read comes before what is written
        targets = check_targets(out, report, files, save=save, force=force)
        model = check_request(request)
        data, sums = _read(request)
        check_data(data, model, clusters)
        more, told = read_beside(shown, data, dataset, force) if report else ({}, [])
    print(views_text(data), flush=True)
    for words in [*data.notes, *told, *formula_notes(data, safe_ids)]:
        note(words)
    found = cluster(request, data, model)
    for words in found.complaints:
        note(words)
    settings = describe_run(request, data, found, sums=sums, targets=targets, command=command)
    writers = writers_of(targets, files, data, found, settings, safe_ids, more)
    write_together(writers, force=force)
    print(f"\n{found_text(found, verbose=verbose)}\n\n{files_text(targets, shown.figures)}")
    if earlier is not None:
        compare(earlier, settings)
    return Fitted(data, found.labels, found.certainty, found.estimator, settings)


def repeat(
    path: str | Path,
    *,
    out: str | Path | None = None,
    report: str | Path | None = None,
    save: str | Path | None = None,
    shown: Beside = NOTHING,
    force: bool = False,
    safe_ids: bool = False,
    verbose: bool = False,
    command: str = "",
) -> Fitted:
    """Repeat the run whose settings are in a .json file beside its labels.

    Prints which files have changed since then, and whether the labels are the same. Without ``out``
    the labels are written next to those of the earlier run, under a free name
    (``labels-again.csv``), or replace them if ``force`` is set.
    """
    path = Path(path)
    with asking():
        earlier = read_settings(path)
        request = earlier_request(path, earlier)
    return fit_files(
        **vars(request),
        out=free_place(path.parent / earlier["labels"], force) if out is None else out,
        report=report,
        save=save,
        shown=shown,
        force=force,
        safe_ids=safe_ids,
        verbose=verbose,
        command=command,
        earlier=earlier,
    )


def _check_readable(files: Sequence[str | Path]) -> None:
    from polyspan.io.matched import check_paths

    check_paths([Path(file) for file in files])


def _read(request: Request) -> tuple["MatchedViews", list[str]]:
    """The views, and the checksums of their files."""
    from polyspan.datasets import load_views

    choices: dict[str, Any] = {name: getattr(request, name) for name in READING}
    with showing("reading"):
        if request.dataset is not None:
            return read_dataset(request.dataset), []
        data = load_views(request.files, **choices)
        return data, [sha256(Path(file)) for file in request.files]
