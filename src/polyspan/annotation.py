"""Write a clustering into the AnnData or MuData that it was made from."""

import json
import math
from collections.abc import Mapping
from typing import Any


def annotate(data: Any, model: Any, key: str = "polyspan") -> None:
    """Write the clusters of a fitted estimator into an AnnData or MuData, in place.

    Samples are matched by id: those of the views that were fitted (``model.sample_ids_``) and
    ``data.obs_names``; by order if the views had no ids.

    Parameters
    ----------
    data : AnnData or MuData
        Gets ``obs[key]``, the cluster of every sample as a categorical of text;
        ``obs[key + "_certainty"]``, where the estimator knows it; and ``uns[key]``, a dictionary of
        the version of polyspan, the method, its parameters, the number of clusters, and, as JSON
        text, the evidence: what a consensus knows of its members, of structure and of the number of
        clusters. All of it can be written to .h5ad and .h5mu. Samples that were not clustered, such
        as those dropped because they lack a view, have no value.
    model : fitted estimator
        Its ``labels_`` are written.
    key : str, default="polyspan"
        The name in ``obs`` and ``uns``; what is there under this name is replaced.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from polyspan import ConcatKMeans, annotate
    >>> cells = anndata.AnnData(np.array([[0.0, 1.0], [5.0, 6.0], [0.0, 1.2]]))
    >>> annotate(cells, ConcatKMeans(n_clusters=2, random_state=0).fit(cells))
    >>> cells.obs["polyspan"].nunique(), cells.uns["polyspan"]["method"]
    (2, 'ConcatKMeans')
    """
    import numpy as np
    import pandas as pd
    from sklearn.utils.validation import check_is_fitted

    from polyspan.io.containers import annotated_kind

    if not annotated_kind(data):
        raise TypeError(f"annotate takes an AnnData or a MuData; got {type(data).__name__}.")
    check_is_fitted(model, "labels_")
    rows = _rows(data, model)
    found = rows >= 0
    names = np.array([str(one) for one in model.labels_], dtype=object)
    values = np.where(found, names[rows], None)
    kinds = [str(one) for one in np.unique(model.labels_)]
    data.obs[key] = pd.Categorical(values, categories=kinds)
    if f"{key}_certainty" in data.obs:  # of an earlier model, which may have known it
        del data.obs[f"{key}_certainty"]
    if getattr(model, "certainty_", None) is not None:
        data.obs[f"{key}_certainty"] = np.where(found, model.certainty_[rows], np.nan)
    data.uns[key] = describe(model)


def _rows(data: Any, model: Any) -> Any:
    """The place of every sample of the data among those of the model; -1 if it has none."""
    import numpy as np

    from polyspan.io.columns import as_ids, first_repeated
    from polyspan.runtime.messages import warn_user

    here, n = as_ids(data.obs_names), len(model.labels_)
    known = getattr(model, "sample_ids_", None)
    there = here if known is None else as_ids(known.tolist())
    if known is None and len(here) != n:
        raise ValueError(
            f"the model has {n} samples without ids, and the data {len(here)}: fit the data "
            "themselves, or tables with their obs_names as index."
        )
    if here == there:
        return np.arange(n)
    for what, ids in (("the data", here), ("the model", there)):
        if len(set(ids)) < len(ids):
            raise ValueError(
                f"the ids of {what} must all be different, but {first_repeated(ids)}: call "
                "obs_names_make_unique() before the fit."
            )
    place = {one: i for i, one in enumerate(there)}
    rows = np.array([place.get(one, -1) for one in here])
    lost = int(np.sum(rows < 0))
    if lost == len(here):
        raise ValueError(
            f"the model and the data have no sample in common (the model has {there[0]!r}, the "
            f"data {here[0]!r}): annotate the data that were fitted."
        )
    if lost:
        first = here[int(np.argmax(rows < 0))]
        warn_user(
            f"{lost} of {len(here)} samples were not clustered and have no label in the data "
            f"(the first is {first!r})."
        )
    return rows


def describe(model: Any) -> dict[str, Any]:
    """A fitted estimator as text and numbers: version, method, parameters, evidence.

    Examples
    --------
    >>> from polyspan import LRR
    >>> from polyspan.datasets import make_subspaces
    >>> found = describe(LRR(n_clusters=2).fit(make_subspaces(20, 2, n_views=1).views))
    >>> found["method"], found["n_clusters"], found["parameters"]["lam"]
    ('LRR', 2, ...)
    """
    from polyspan import __version__

    names = ("table_", "scaling_", "structure_evidence_", "evidence_", "modularity_", "n_iter_")
    evidence = {name.rstrip("_"): getattr(model, name) for name in names if hasattr(model, name)}
    params = plain(model.get_params(deep=False))
    return {
        "version": __version__,
        "method": type(model).__name__,
        "n_clusters": len(set(model.labels_.tolist())),
        "parameters": {
            name: value if isinstance(value, bool | int | float | str) else json.dumps(value)
            for name, value in params.items()
        },
        "evidence": json.dumps(plain(evidence), ensure_ascii=False),
    }


def plain(value: Any) -> Any:
    """Convert a value to what JSON can hold; anything else becomes text.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.arange(2), "b": float("nan"), "c": (None, bool)})
    {'a': [0, 1], 'b': 'nan', 'c': [None, "<class 'bool'>"]}
    """
    import numpy as np

    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    return value if isinstance(value, str | int | bool | None) else repr(value)
