"""From a fitted estimator to the finished HTML file."""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj

from polyspan.atomic import replacing
from polyspan.inputs.scaling import SCALES
from polyspan.report.page import Content, build_page
from polyspan.solvers.arrays import to_numpy

MOST_CLUSTERS = 32767  # their numbers take two bytes in the file


def write_report(
    path: str | Path,
    *,
    views: Sequence[Any],
    view_names: Sequence[str],
    sample_ids: Sequence[Any],
    estimator: Any,
    labels: Any,
    certainty: Any = None,
    selection: Any = None,
    evidence: Any = None,
    command: str = "",
    repeat: str = "",
    title: str = "",
    notes: Iterable[str] = (),
    force: bool = False,
    date: datetime | None = None,
) -> Path:
    """Write one HTML file that shows a clustering: map, clusters, affinity, views, certainty.

    The file needs no network and no other file. Whatever text is passed in is shown as text.

    Parameters
    ----------
    path : path
        The file. Its folder must exist.
    views : list of (n, d_k) arrays or scipy.sparse matrices
        What was clustered, before any scaling; missing values are NaN.
    view_names : list of str
        One name per view.
    sample_ids : sequence of length n
        What the samples are called.
    estimator : fitted estimator
        Any of `polyspan.METHODS`. ``affinity_matrix_``, ``history_`` and ``n_iter_`` are shown
        where there are any; without an affinity the map shows the views themselves.
    labels : (n,) array-like
        Cluster of every sample; these are shown, also where ``estimator.labels_`` differ.
    certainty : (n,) array-like, optional
        Certainty of every label, 0 to 1. None takes that of ``selection``, else the share of a
        sample's affinity that goes to its own cluster, else (no affinity) how much nearer its own
        cluster's centre is than the next; the page says which.
    selection : object, optional
        What `polyspan.selection.select` returned, or an object with any of ``table`` (list of
        dicts, one per setting), ``certainty``, ``n_clusters`` and ``evidence``. Where its
        ``labels`` are those shown, the page calls them a consensus. Lists in ``evidence`` become a
        table and, over the list ``n_clusters`` (or ``candidates``), a chart; so do dicts from
        counts to scores. Other lists of numbers are charts, lists of dicts tables, and anything
        else is one line.
    evidence : dict, optional
        What `polyspan.selection.count_clusters` says of the number of clusters, where nothing was
        selected.
    command : str
        The command of the run; the call in Python is shown in any case.
    repeat : str
        The command that repeats the run, if that is another one.
    title : str
        Heading; the default names the method and counts clusters.
    notes : iterable of str
        Sentences that the reader should know, shown at the top.
    force : bool, default=False
        Replace ``path`` if it exists.
    date : datetime, optional
        Date on the page; None is ``SOURCE_DATE_EPOCH`` of the environment, or now. All else on
        the page depends on the input alone.

    Returns
    -------
    Path
        The file written. It appears whole or not at all.

    Raises
    ------
    FileExistsError
        ``path`` exists, and ``force`` is not set.
    FileNotFoundError
        Its folder does not exist.
    ValueError
        Something does not fit together; the message says what.

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
    ...         labels=model.labels_,
    ...     )
    ...     file.read_text("utf-8")[:15]
    '<!doctype html>'
    """
    path = _check_path(Path(path), force)
    if selection is None and evidence is not None:
        selection = SimpleNamespace(evidence=evidence, n_clusters=estimator.n_clusters)
    content = _check_content(
        views, view_names, sample_ids, estimator, labels, certainty, selection, notes
    )
    text = build_page(
        content._replace(command=str(command), repeat=str(repeat), title=str(title)), _date(date)
    )
    _check_path(path, force)  # it may have come into being meanwhile
    with replacing(path) as part:
        part.write_text(text, "utf-8", newline="\n")
    return path


def _check_path(path: Path, force: bool) -> Path:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file for the report.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists: say force to replace it, or name another file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} for the report does not exist: make it.")
    return path


def _check_content(
    views: Any,
    view_names: Any,
    sample_ids: Any,
    estimator: Any,
    labels: Any,
    certainty: Any,
    selection: Any,
    notes: Any,
) -> Content:
    """Check that all parts of a report fit together, before anything is computed."""
    arrays = [_array(view) for view in views]
    names = [str(name) for name in view_names]
    ids = [str(name) for name in sample_ids]
    if not arrays:
        raise ValueError("views is empty: give at least one view.")
    if len(names) != len(arrays):
        raise ValueError(
            f"there are {len(arrays)} views but {len(names)} view_names: give one name per view."
        )
    marks = _array(labels)
    n = len(ids)
    if marks.ndim != 1 or len(marks) != n or n == 0:
        raise ValueError(
            f"labels has shape {marks.shape}, but there are {n} sample_ids: give one label per "
            "sample."
        )
    for name, X in zip(names, arrays, strict=True):
        if X.ndim != 2 or X.shape[0] != n or X.shape[1] == 0:
            raise ValueError(
                f"view {name!r} has shape {X.shape}, but there are {n} sample_ids: a view has one "
                "row per sample and at least one column."
            )
        if X.dtype.kind not in "fiub":
            raise ValueError(f"view {name!r} holds {X.dtype} values: convert them to numbers.")
    W = getattr(estimator, "affinity_matrix_", None)
    if W is not None:
        W = sp.csr_array(W) if sp.issparse(W) else _array(W)
        if W.shape != (n, n):
            raise ValueError(
                f"estimator.affinity_matrix_ has shape {W.shape}, but there are {n} sample_ids: "
                "give the estimator that was fitted on these samples."
            )
    own = getattr(selection, "certainty", None)
    given = own if certainty is None else certainty
    of_selection = own is not None and np.array_equal(_array(given), _array(own))
    if given is not None:
        given = _array(given).astype(np.float64)
        if given.shape != (n,) or not np.all((given >= -1e-9) & (given <= 1 + 1e-9)):
            raise ValueError(
                f"certainty must be {n} numbers between 0 and 1, one per sample; got shape "
                f"{given.shape}" + (", some outside." if given.shape == (n,) else ".")
            )
        given = np.clip(given, 0, 1)
    if isinstance(notes, str):
        notes = (notes,)
    scale = estimator.get_params(deep=False).get("scale", "unit")
    clusters, codes = np.unique(marks, return_inverse=True)
    if len(clusters) > MOST_CLUSTERS:
        raise ValueError(
            f"labels has {len(clusters)} clusters; a report can show {MOST_CLUSTERS} at most."
        )
    return Content(
        views=arrays,
        view_names=names,
        ids=ids,
        clusters=[str(name) for name in clusters.tolist()],
        codes=codes,
        estimator=estimator,
        affinity=W,
        certainty=given,
        certainty_of="selection" if of_selection else "given",
        selection=selection,
        n_agreeing=_agreeing(selection, marks),
        notes=[str(note) for note in notes],
        scale=scale if scale in SCALES else "unit",
    )


def _agreeing(selection: Any, labels: np.ndarray) -> int:
    """How many settings the labels are the consensus of; 0 where they are of one estimator."""
    merged, rows = (getattr(selection, name, None) for name in ("labels", "table"))
    if merged is None or rows is None or not np.array_equal(_array(merged), labels):
        return 0
    rows = rows.to_dict("records") if hasattr(rows, "to_dict") else rows
    return sum(row.get("weight", 0) > 0 for row in rows)


def _array(x: Any) -> Any:
    """Bring anything that holds numbers to NumPy; sparse matrices stay."""
    if sp.issparse(x):
        return x
    return to_numpy(x) if is_array_api_obj(x) else np.asarray(x)


def _date(date: datetime | None) -> str:
    if date is None:
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        date = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    if date.tzinfo is not None:
        date = date.astimezone(UTC)
    return date.strftime("%Y-%m-%d %H:%M") + (" UTC" if date.tzinfo is not None else "")
