"""From a fitted estimator to the finished HTML file."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from polyspan.atomic import check_place, replacing, replacing_all
from polyspan.base import MultiViewClusterer
from polyspan.explain import open_known
from polyspan.explain.given import ids_of, named_views
from polyspan.explain.markers import csv_text
from polyspan.figures import check_figure_path, new_figure, save_figure
from polyspan.figures.files import FORMATS, write_figure
from polyspan.report.content import Content, check_content
from polyspan.report.page import build_page
from polyspan.runtime.messages import setting
from polyspan.selection.count import Evidence


def report_model(
    model: Any,
    path: str | Path,
    X: Any,
    *,
    known: Any = None,
    survival: tuple[str, str] | None = None,
    **options: Any,
) -> Path:
    """Write the report of a fitted model on the views X; ``model.report`` has the parameters.

    Examples
    --------
    >>> import tempfile
    >>> from polyspan import ConcatKMeans
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(60, 3, random_state=0)
    >>> model = ConcatKMeans(3, random_state=0).fit(data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report_model(model, f"{folder}/report.html", data).name
    'report.html'
    """
    named = named_views(X, model.views)
    return write_report(
        path, views=named.arrays, view_names=named.names, sample_ids=ids_of(named),
        estimator=model, feature_names=list(named.columns.values()),
        known=open_known(known, named), survival=survival, **options,
    )  # fmt: skip


def write_report(
    path: str | Path,
    *,
    views: Sequence[Any],
    view_names: Sequence[str],
    sample_ids: Sequence[Any],
    estimator: MultiViewClusterer,
    labels: Any = None,
    certainty: Any = None,
    evidence: Evidence | None = None,
    command: str = "",
    repeat: str = "",
    title: str = "",
    notes: Iterable[str] = (),
    feature_names: Sequence[Sequence[str]] | None = None,
    known: Mapping[str, Any] | None = None,
    survival: tuple[str, str] | None = None,
    figures: str | Path | None = None,
    picture: str | Path | None = None,
    force: bool = False,
    safe_ids: bool = False,
    date: datetime | None = None,
) -> Path:
    """Write one HTML file that shows what the clusters are and how sure one may be.

    The file needs no network and no other file. Any text passed in is shown as text, never as HTML.

    Parameters
    ----------
    path : path
        The file. Its folder must exist.
    views : list of (n, d_k) arrays or scipy.sparse matrices
        The views that were clustered, before any scaling; missing values are NaN.
    view_names : list of str
        One name per view.
    sample_ids : sequence of length n
        Names of the samples.
    estimator : fitted estimator
        A `ConsensusClusterer`, whose members are shown in a table, or any of `polyspan.METHODS`.
        ``affinity_matrix_``, ``history_`` and ``n_iter_`` are shown if it has them (for a
        consensus, those of the nearest member); without an affinity the map shows the views.
    labels : (n,) array-like, optional
        Cluster of every sample, to show other clusters than ``estimator.labels_``.
    certainty : (n,) array-like, optional
        Certainty of every label, 0 to 1. If None, it is the estimator's ``certainty_``; without
        that, the share of a sample's affinity that goes to its own cluster; without an affinity,
        how much nearer its own cluster's center is than the next. The page says which.
    evidence : dict, optional
        Evidence from `count_clusters`, shown as a table and charts. If None, that of a consensus
        is used.
    command : str
        The command of the run; the call in Python is always shown.
    repeat : str
        The command that repeats the run, if it is a different one.
    title : str
        Heading; the default has the method and the number of clusters and samples.
    notes : iterable of str
        Notes for the reader, shown at the top.
    feature_names : list of lists of str, optional
        Names of the features of every view; None is those of tables, or numbers.
    known : mapping of str to sequence of length n, optional
        What else is known of the samples, such as subtypes and ages, to compare the clusters with;
        None where it is unknown. See `polyspan.explain.associations`.
    survival : (str, str), optional
        The columns of ``known`` that hold time and event. See `polyspan.explain.survival`.
    figures : path, optional
        A folder for every figure of the page as .svg, .png and .pdf, and for every table as .csv;
        it is created.
    picture : path, optional
        One picture (.png, .svg or .pdf) of the map, the consensus matrix and the best features.
    force : bool, default=False
        Replace ``path``, ``picture`` and files in ``figures``, if they exist.
    safe_ids : bool, default=False
        Write ' before names that begin with =, +, - or @ in every .csv table, also those of the
        page: spreadsheets take them for formulas.
    date : datetime, optional
        Date on the page; None is ``SOURCE_DATE_EPOCH`` of the environment, or now. Everything else
        on the page depends only on the input.

    Returns
    -------
    Path
        The file, which is written completely or not at all.

    Raises
    ------
    FileExistsError
        ``path`` exists and ``force`` is not set.
    FileNotFoundError
        Its folder does not exist.
    ValueError
        The arguments do not fit together; the message says why.

    Examples
    --------
    >>> import tempfile
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.report import write_report
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> model = GRMSC(n_clusters=3, random_state=0).fit(data.views)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_report(
    ...         f"{folder}/report.html",
    ...         views=data.views,
    ...         view_names=data.view_names,
    ...         sample_ids=range(60),
    ...         estimator=model,
    ...     )
    ...     file.read_text("utf-8")[:15]
    '<!doctype html>'
    """
    path = _check_path(Path(path), force)
    content = check_content(
        views, view_names, sample_ids, estimator, labels, certainty, evidence, notes,
        feature_names, known, survival,
    )  # fmt: skip
    folder = None if figures is None else check_folder(figures, force)
    drawn = None if picture is None else _check_path(check_figure_path(picture), force)
    content = content._replace(
        command=str(command), repeat=str(repeat), title=str(title), safe_ids=safe_ids
    )
    text = build_page(content, date_words(date))
    _check_path(path, force)  # it may have been created in the meantime
    with replacing(path) as part:
        part.write_text(text, "utf-8", newline="\n")
        if drawn is not None:
            save_figure(draw_picture(content.drawings), drawn, dpi=100)
        if folder is not None:
            write_figures(content, folder)
    return path


def _check_path(path: Path, force: bool) -> Path:
    check_place(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists: pass force=True, or choose another file.")
    return path


def date_words(date: datetime | None = None) -> str:
    """The date on a page; see `write_report`."""
    if date is None:
        seconds = os.environ.get("SOURCE_DATE_EPOCH", f"{time.time():.0f}")
        try:
            date = datetime.fromtimestamp(int(seconds), UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise ValueError(
                f"SOURCE_DATE_EPOCH={seconds!r} is no number of seconds since 1970: set it to one, "
                "or leave it out"
            ) from error
    if date.tzinfo is not None:
        date = date.astimezone(UTC)
    return date.strftime("%Y-%m-%d %H:%M") + (" UTC" if date.tzinfo is not None else "")


# ---- what can be taken away: figures as .svg, .png and .pdf, tables as .csv ---------------------


def check_folder(folder: str | Path, force: bool = False) -> Path:
    """Return the folder for figures if it can be written to: it is empty, or to be created."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: name a folder for the figures.")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise FileExistsError(
            f"the folder {folder} for the figures is not empty: replace what is in it with "
            f"{setting('force', True)}, or choose another."
        )
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {folder.parent}: create it first.")
    return folder


def write_figures(content: Content, folder: Path) -> None:
    """Write all figures and tables that a page was built with, or none."""
    new = not folder.exists()
    folder.mkdir(exist_ok=True)
    tables = {folder / f"{name}.csv": columns for name, columns in content.tables.items()}
    figures = {folder / f"{name}{kind}": figure for name, figure in content.figures.items()
               for kind in FORMATS}  # fmt: skip
    try:
        with replacing_all([*tables, *figures]) as parts:
            for path, columns in tables.items():
                parts[path].write_text(csv_text(columns, content.safe_ids), "utf-8", newline="")
            for path, figure in figures.items():
                write_figure(figure, parts[path], path.suffix[1:], dpi=200)
    except BaseException:
        if new:
            folder.rmdir()
        raise


def draw_picture(drawings: Mapping[str, Any]) -> Any:
    """Map and consensus matrix above, features below: those that a report has, in one figure.

    Examples
    --------
    >>> from polyspan.figures import plot_certainty
    >>> len(draw_picture({"map": lambda ax: plot_certainty([0.5], ax)}).axes)
    1
    """
    rows = [[name if name in drawings else "." for name in ("map", "consensus")]]
    rows += [["features"] * 2] * ("features" in drawings)
    figure = new_figure(13, 6.4 * len(rows))
    axes: dict[str, Any] = figure.subplot_mosaic(rows)
    for name, ax in axes.items():
        drawings[name](ax=ax)
    return figure
