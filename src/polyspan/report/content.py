"""The contents of a report, checked."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj
from sklearn.utils.validation import check_is_fitted

from polyspan.base import MultiViewClusterer
from polyspan.explain.given import numbered
from polyspan.figures.files import clean
from polyspan.inputs.scaling import SCALES, Scaling, scaling_per_view
from polyspan.io.containers import column_names, open_views
from polyspan.io.samples import match_rows
from polyspan.runtime.arrays import to_numpy
from polyspan.runtime.messages import unknown_name
from polyspan.selection import ConsensusClusterer
from polyspan.selection.count import Evidence

MOST_CLUSTERS = 32767  # their numbers take two bytes in the file
MOST_SHOWN = 20_000  # samples; with more, the page shows some of them
FEWEST_SHOWN = 50  # of every cluster, where it has so many


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
    feature_names: list[list[str]]  # of each view
    known: dict[str, np.ndarray]  # columns of what is known of the samples
    survival: tuple[str, str] | None  # the two of them that hold time and event
    drawings: dict[str, Any]  # what draws a figure, on axes or its own; added for the page
    figures: dict[str, Any]  # of matplotlib, added likewise
    tables: dict[str, Any]  # columns by name, added likewise
    rows: np.ndarray  # which of the samples of the fit are shown
    command: str = ""
    repeat: str = ""
    title: str = ""
    safe_ids: bool = False  # whether tables are safe to open in a spreadsheet


def check_content(
    views: Any, view_names: Any, sample_ids: Any, estimator: MultiViewClusterer, labels: Any,
    certainty: Any, evidence: Evidence | None, notes: Any, feature_names: Any = None,
    known: Any = None, survival: Any = None,
) -> Content:  # fmt: skip
    """Check that all parts of a report fit together, before anything is computed."""
    matched = _matched(list(views))
    arrays = [_array(view) for view in matched]
    names = _different([clean(name) for name in view_names])
    ids = [clean(name) for name in sample_ids]
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
    merged = estimator if isinstance(estimator, ConsensusClusterer) else None
    shown: Any = estimator if merged is None else merged.best_estimator_
    W = getattr(shown, "affinity_matrix_", None)
    if W is not None:
        W = sp.csr_array(W) if sp.issparse(W) else _array(W)
        if W.shape != (n, n):
            raise ValueError(
                f"the estimator's affinity_matrix_ has shape {W.shape}, but there are {n} "
                "sample_ids: give the estimator that was fitted on these samples."
            )
    given = getattr(estimator, "certainty_", None) if certainty is None else certainty
    of_consensus = merged is not None and np.array_equal(_array(given), _array(merged.certainty_))
    if given is not None:
        given = _array(given).astype(np.float64)
        if given.shape != (n,) or not np.all((given >= -1e-9) & (given <= 1 + 1e-9)):
            raise ValueError(
                f"certainty must be {n} numbers between 0 and 1, one per sample; got shape "
                f"{given.shape}" + (", some outside." if given.shape == (n,) else ".")
            )
        given = np.clip(given, 0, 1)
    if evidence is None and merged is not None:
        evidence = merged.evidence_
    if isinstance(notes, str):
        notes = (notes,)
    scale = scaling_per_view(shown.get_params(deep=False).get("scale", "unit"), len(arrays))
    clusters, codes = np.unique(marks, return_inverse=True)
    if len(clusters) > MOST_CLUSTERS:
        raise ValueError(
            f"labels has {len(clusters)} clusters; a report can show at most {MOST_CLUSTERS}."
        )
    columns = {
        str(name): np.array([clean(x) if isinstance(x, str) else x for x in known[name]], object)
        for name in known or {}
    }
    _check_known(columns, survival, n)
    return Content(
        views=arrays, view_names=names,
        feature_names=_features(matched, arrays, names, feature_names),
        scales=[one if one in SCALES else "unit" for one in scale], ids=ids, rows=np.arange(n),
        clusters=[clean(name) for name in clusters.tolist()], codes=codes,
        estimator=estimator, shown=shown, affinity=W, evidence=evidence, notes=list(notes),
        certainty=given, certainty_of="consensus" if of_consensus else "given",
        members=[] if merged is None else merged.table_, n_agreeing=_agreeing(estimator, marks),
        known=columns, survival=survival, drawings={}, figures={}, tables={},
    )  # fmt: skip


def sampled(c: Content) -> Content:
    """The content with at most 20,000 samples, drawn at random, and a note that says so."""
    n = len(c.ids)
    if n <= MOST_SHOWN:
        return c
    order = np.random.default_rng(0).permutation(n)
    ranked = order[np.argsort(c.codes[order], kind="stable")]  # by cluster, shuffled within
    sizes = np.bincount(c.codes)
    place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = ranked[place < FEWEST_SHOWN]
    rest = np.setdiff1d(order, first, assume_unique=True)
    drawn = np.random.default_rng(1).choice(rest, max(0, MOST_SHOWN - len(first)), replace=False)
    rows = np.sort(np.concatenate([first, drawn]))
    told = (
        f"The page shows {len(rows):,} of the {n:,} samples, drawn at random (at least "
        f"{FEWEST_SHOWN} of every cluster that has so many); all sizes, features and tests on it "
        "are of these. The file of labels has all samples."
    )
    views = [(sp.csr_array(X) if sp.issparse(X) else X)[rows] for X in c.views]
    return c._replace(
        views=views,
        ids=[c.ids[i] for i in rows],
        codes=c.codes[rows],
        affinity=None if c.affinity is None else c.affinity[rows][:, rows],
        certainty=None if c.certainty is None else c.certainty[rows],
        known={name: one[rows] for name, one in c.known.items()},
        notes=[told, *c.notes],
        rows=rows,
    )


def _different(names: list[str]) -> list[str]:
    """Names of views; the second of the same name gets a number."""
    before = [names[:i].count(name) for i, name in enumerate(names)]
    return [f"{name} ({n + 1})" if n else name for name, n in zip(names, before, strict=True)]


def _features(matched: list[Any], arrays: list[Any], views: list[str], given: Any) -> list[Any]:
    """The names of the features: as given, those of tables, or numbers."""
    given = given or [[]] * len(arrays)
    found = [
        [clean(name) for name in own or column_names(table) or numbered(X.shape[1])]
        for own, table, X in zip(given, matched, arrays, strict=True)
    ]
    for name, own, X in zip(views, found, arrays, strict=True):
        if len(own) != X.shape[1]:
            raise ValueError(
                f"view {name!r} has {X.shape[1]} features, but {len(own)} feature_names: give one "
                "name per feature."
            )
    return found


def _check_known(known: dict[str, np.ndarray], survival: Any, n: int) -> None:
    for name, values in known.items():
        if values.shape != (n,):
            raise ValueError(
                f"known has {len(values)} values in {name!r}, but there are {n} sample_ids: give "
                "one value per sample, None where it is unknown."
            )
    for name in survival or ():
        if name not in known:
            raise ValueError(unknown_name("column of survival", name, list(known)))


def _agreeing(estimator: MultiViewClusterer, labels: np.ndarray) -> int:
    """Number of members in the consensus; 0 if the labels are those of one method."""
    if isinstance(estimator, ConsensusClusterer) and np.array_equal(estimator.labels_, labels):
        return sum(row["weight"] > 0 for row in estimator.table_)
    return 0


def _matched(views: list[Any]) -> list[Any]:
    """Views with their rows in the order of the first, as a fit has them."""
    opened, order = open_views(views) if views else (None, None)
    return views if opened is None else list(match_rows(opened, order)[0].values())


def _array(x: Any) -> Any:
    """Convert anything that holds numbers to NumPy; sparse matrices stay sparse."""
    if sp.issparse(x):
        return x
    return to_numpy(x) if is_array_api_obj(x) else np.asarray(x)
