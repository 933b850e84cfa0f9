"""Measured cell nuclei of breast tumors, in three views: they come with scikit-learn."""

import numpy as np

from polyspan.io.dataset import Dataset

VIEWS = ("mean", "error", "worst")


def load_nuclei_views(n_samples: int | None = None, random_state: int | None = 0) -> Dataset:
    """Three views of the 569 breast tumors (Wisconsin, diagnostic) bundled with scikit-learn.

    Ten measures of the cell nuclei in a needle biopsy (radius, texture, concavity, ...), summed up
    in three ways:

    ========== ======== =======================================================
    view       features what it is
    ========== ======== =======================================================
    mean       10       mean over the nuclei in the picture
    error      10       its standard error: how much the nuclei differ
    worst      10       mean of the three largest values
    ========== ======== =======================================================

    Parameters
    ----------
    n_samples : int, optional
        Size of a random subset; all 569 when None.
    random_state : int or None, default=0
        Seed for drawing the subset.

    Returns
    -------
    Dataset
        The classes are malignant (0) and benign (1); ``extra["diagnosis"]`` has them in words.

    Examples
    --------
    >>> from polyspan.datasets import load_nuclei_views
    >>> data = load_nuclei_views(n_samples=400)
    >>> data
    Dataset('wdbc': 400 samples, 3 views (mean 10, error 10, worst 10), 2 clusters)
    >>> data.columns[2][:3]
    ['radius', 'texture', 'perimeter']
    """
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    X, labels = found.data, found.target
    if n_samples is not None:
        if not 2 <= n_samples <= len(X):
            raise ValueError(f"n_samples must be from 2 to {len(X)}, got {n_samples}")
        rows = np.sort(np.random.default_rng(random_state).permutation(len(X))[:n_samples])
        X, labels = X[rows], labels[rows]
    # The columns are named "mean radius", "radius error" and "worst radius".
    places = {
        view: [j for j, name in enumerate(found.feature_names) if view in name.split()]
        for view in VIEWS
    }
    columns = [
        [" ".join(word for word in found.feature_names[j].split() if word != view) for j in own]
        for view, own in places.items()
    ]
    return Dataset(
        "wdbc",
        [np.ascontiguousarray(X[:, own]) for own in places.values()],
        labels.astype(np.int64),
        list(places),
        n_clusters=2,
        extra={"diagnosis": found.target_names[labels]},
        columns=columns,
    )
