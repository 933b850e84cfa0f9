"""The contents of a report, checked."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj
from sklearn.utils.validation import check_is_fitted

from polyspan.base import MultiViewClusterer
from polyspan.inputs.containers import open_views
from polyspan.inputs.samples import match_rows
from polyspan.inputs.scaling import SCALES, Scaling, scaling_per_view
from polyspan.selection import ConsensusClusterer
from polyspan.selection.count import Evidence
from polyspan.solvers.arrays import to_numpy

MOST_CLUSTERS = 32767  # their numbers take two bytes in the file


class Content(NamedTuple):
    """The contents of a report, checked."""

    views: list[Any]
    view_names: list[str]
    ids: list[str]
    clusters: list[str]
    codes: np.ndarray  # (n,) position of every sample's cluster in ``clusters``
    estimator: MultiViewClusterer
    shown: MultiViewClusterer  # in map, affinity and convergence; of a consensus, the nearest
    affinity: Any
    certainty: np.ndarray | None
    certainty_of: str
    members: list[dict[str, Any]]  # the table of a consensus
    evidence: Evidence | None  # for the number of clusters; None or empty if it was given
    n_agreeing: int  # members in the consensus; 0 if the clusters are those of one method
    notes: list[str]
    scales: list[Scaling]  # of each view
    command: str = ""
    repeat: str = ""
    title: str = ""


def check_content(
    views: Any,
    view_names: Any,
    sample_ids: Any,
    estimator: MultiViewClusterer,
    labels: Any,
    certainty: Any,
    evidence: Evidence | None,
    notes: Any,
) -> Content:
    """Check that all parts of a report fit together, before anything is computed."""
    arrays = [_array(view) for view in _matched(list(views))]
    names = [str(name) for name in view_names]
    ids = [str(name) for name in sample_ids]
    if not arrays:
        raise ValueError("views is empty: give at least one view.")
    if len(names) != len(arrays):
        raise ValueError(
            f"there are {len(arrays)} views but {len(names)} view_names: give one name per view."
        )
    check_is_fitted(estimator, "labels_")
    marks = _array(estimator.labels_ if labels is None else labels)
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
    merged = isinstance(estimator, ConsensusClusterer)
    shown = estimator.best_estimator_ if merged else estimator
    W = getattr(shown, "affinity_matrix_", None)
    if W is not None:
        W = sp.csr_array(W) if sp.issparse(W) else _array(W)
        if W.shape != (n, n):
            raise ValueError(
                f"the estimator's affinity_matrix_ has shape {W.shape}, but there are {n} "
                "sample_ids: give the estimator that was fitted on these samples."
            )
    given = getattr(estimator, "certainty_", None) if certainty is None else certainty
    of_consensus = merged and np.array_equal(_array(given), estimator.certainty_)
    if given is not None:
        given = _array(given).astype(np.float64)
        if given.shape != (n,) or not np.all((given >= -1e-9) & (given <= 1 + 1e-9)):
            raise ValueError(
                f"certainty must be {n} numbers between 0 and 1, one per sample; got shape "
                f"{given.shape}" + (", some outside." if given.shape == (n,) else ".")
            )
        given = np.clip(given, 0, 1)
    if evidence is None and merged:
        evidence = estimator.evidence_
    if isinstance(notes, str):
        notes = (notes,)
    scale = scaling_per_view(shown.get_params(deep=False).get("scale", "unit"), len(arrays))
    clusters, codes = np.unique(marks, return_inverse=True)
    if len(clusters) > MOST_CLUSTERS:
        raise ValueError(
            f"labels has {len(clusters)} clusters; a report can show at most {MOST_CLUSTERS}."
        )
    return Content(
        views=arrays,
        view_names=names,
        ids=ids,
        clusters=[str(name) for name in clusters.tolist()],
        codes=codes,
        estimator=estimator,
        shown=shown,
        affinity=W,
        certainty=given,
        certainty_of="consensus" if of_consensus else "given",
        members=estimator.table_ if merged else [],
        evidence=evidence,
        n_agreeing=_agreeing(estimator, marks),
        notes=[str(note) for note in notes],
        scales=[one if one in SCALES else "unit" for one in scale],
    )


def _agreeing(estimator: MultiViewClusterer, labels: np.ndarray) -> int:
    """Number of members in the consensus; 0 if the labels are those of one method."""
    if not isinstance(estimator, ConsensusClusterer):
        return 0
    if not np.array_equal(estimator.labels_, labels):
        return 0
    return sum(row["weight"] > 0 for row in estimator.table_)


def _matched(views: list[Any]) -> list[Any]:
    """Views with their rows in the order of the first, as a fit has them."""
    opened, order = open_views(views) if views else (None, None)
    return views if opened is None else list(match_rows(opened, order)[0].values())


def _array(x: Any) -> Any:
    """Convert anything that holds numbers to NumPy; sparse matrices stay sparse."""
    if sp.issparse(x):
        return x
    return to_numpy(x) if is_array_api_obj(x) else np.asarray(x)
