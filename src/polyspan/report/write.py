"""From a fitted estimator to the finished HTML file."""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from polyspan.atomic import check_place, replacing
from polyspan.base import MultiViewClusterer
from polyspan.explain import open_given, open_known
from polyspan.figures import check_figure_path, save_figure
from polyspan.report.content import check_content
from polyspan.report.downloads import check_folder, draw_picture, write_figures
from polyspan.report.page import build_page
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
    given = open_given(X, model.views)
    return write_report(
        path,
        views=given.views.arrays,
        view_names=given.view_names,
        sample_ids=given.ids,
        estimator=model,
        feature_names=given.feature_names,
        known=open_known(known, given),
        survival=survival,
        **options,
    )


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
    content = content._replace(command=str(command), repeat=str(repeat), title=str(title))
    text = build_page(content, _date(date))
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


def _date(date: datetime | None) -> str:
    if date is None:
        date = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), UTC)
    if date.tzinfo is not None:
        date = date.astimezone(UTC)
    return date.strftime("%Y-%m-%d %H:%M") + (" UTC" if date.tzinfo is not None else "")
