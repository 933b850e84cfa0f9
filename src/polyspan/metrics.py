"""Scores of a clustering against known classes: the paper's six, plus recall, purity and ARI."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

PAPER_SCORES = ("nmi", "acc", "f_score", "avg_entropy", "precision", "rand_index")
SCORES = (*PAPER_SCORES, "recall", "purity", "ari")


def clustering_scores(labels_true: Any, labels_pred: Any) -> dict[str, float]:
    """Compare a clustering with the true classes by nine scores.

    Parameters
    ----------
    labels_true, labels_pred : (n,) array-like
        Classes and clusters; only which samples are together matters, not the names. Samples
        without one of them (None, NaN, masked) are left out.

    Returns
    -------
    dict of str to float
        ``nmi`` normalized mutual information, 2 I / (H(classes) + H(clusters));
        ``acc`` accuracy under the best one-to-one matching of clusters to classes;
        ``precision``, ``recall`` and ``f_score`` over pairs of samples that are together;
        ``rand_index`` share of pairs on which both agree; ``avg_entropy`` H(classes | clusters) in
        bits, **lower is better**; ``purity`` share of samples in the majority class of their
        cluster; ``ari`` adjusted Rand index. A perfect clustering scores 1, except for
        ``avg_entropy``, where it scores 0.

    Notes
    -----
    Precision is 1 if no two samples are together in the clustering (no claimed pair is wrong), and
    recall is 1 if no two are together in the classes.

    Examples
    --------
    >>> scores = clustering_scores([0, 0, 1, 1], ["b", "b", "a", "c"])
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'nmi': 0.8, 'acc': 0.75, 'f_score': 0.667, 'avg_entropy': 0.0, 'precision': 1.0,
     'rand_index': 0.833, 'recall': 0.5, 'purity': 1.0, 'ari': 0.571}
    """
    import pandas as pd

    true, pred = _marks(labels_true), _marks(labels_pred)
    if true.ndim != 1 or true.shape != pred.shape or true.size == 0:
        raise ValueError(
            "labels_true and labels_pred must be 1-D, not empty and of equal length; got shapes "
            f"{true.shape} and {pred.shape}."
        )
    known = ~(pd.isna(true) | pd.isna(pred))
    if not known.any():
        raise ValueError("no sample has both a class and a cluster: all are None or NaN.")
    true, pred = (
        marks[known] if hasattr(given, "dtype") else np.array(marks[known].tolist())
        for marks, given in ((true, labels_true), (pred, labels_pred))
    )
    try:
        C = contingency_matrix(true, pred).astype(np.int64)  # classes x clusters
    except TypeError as error:
        raise ValueError(
            "labels_true and labels_pred must each be all numbers or all text: some class names "
            f"cannot be compared ({error})."
        ) from error
    n = int(C.sum())

    H_classes, H_clusters = _entropy(C.sum(1)), _entropy(C.sum(0))
    mutual = max(0.0, H_classes + H_clusters - _entropy(C.ravel()))
    total = H_classes + H_clusters

    matched = C[linear_sum_assignment(C, maximize=True)].sum()

    together, in_classes, in_clusters = _pairs(C), _pairs(C.sum(1)), _pairs(C.sum(0))
    pairs = n * (n - 1) // 2
    precision = together / in_clusters if in_clusters else 1.0
    recall = together / in_classes if in_classes else 1.0
    agreeing = pairs + 2 * together - in_classes - in_clusters
    expected = in_classes * in_clusters / pairs if pairs else 0.0
    spread = (in_classes + in_clusters) / 2 - expected
    found = {
        "nmi": 2 * mutual / total if total > 0 else 1.0,
        "acc": matched / n,
        "f_score": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "avg_entropy": max(0.0, H_classes - mutual),
        "precision": precision,
        "rand_index": agreeing / pairs if pairs else 1.0,
        "recall": recall,
        "purity": C.max(axis=0).sum() / n,
        "ari": (together - expected) / spread if spread else 1.0,
    }
    return {name: float(found[name]) for name in SCORES}


def _marks(labels: Any) -> np.ndarray:
    """Labels as an array; a list as one of objects, so that None and NaN stay what they are."""
    if isinstance(labels, np.ma.MaskedArray):
        labels = labels.tolist()  # None where it is masked
    return np.asarray(labels, dtype=None if hasattr(labels, "dtype") else object)


def _entropy(counts: np.ndarray) -> float:
    """Entropy in bits of a distribution given by counts."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum())


def _pairs(counts: np.ndarray) -> int:
    """Number of pairs inside groups of the given sizes."""
    return int((counts * (counts - 1) // 2).sum())
