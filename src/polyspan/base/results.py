"""What every fitted estimator can tell of its samples."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.inputs.optional import require


class Results:
    """Labels as an array and as a table."""

    labels_: np.ndarray

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Cluster the samples and return their labels.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        (n,) array
            Cluster of every sample, in the order of the first view.
        """
        return self.fit(X, y).labels_  # type: ignore[attr-defined]

    def labels_frame(self) -> Any:
        """The labels as a table with one row per sample, in the order of ``labels_``.

        Returns
        -------
        pandas.DataFrame
            The ids of the samples, in a column called like the index they came from, or
            ``sample`` (rows are numbered from 0 if the views have no ids); ``cluster``; and
            ``certainty``, where the estimator knows it. Needs pandas (the extra ``tables``).

        Examples
        --------
        >>> import pandas as pd
        >>> from polyspan import ConcatKMeans
        >>> look = pd.DataFrame({"legs": [2.0, 4, 6], "wings": [2.0, 0, 4]}, ["wren", "fox", "bee"])
        >>> ConcatKMeans(n_clusters=3, random_state=0).fit(look).labels_frame()["sample"].tolist()
        ['wren', 'fox', 'bee']
        """
        check_is_fitted(self, "labels_")
        pandas = require("pandas", "tables", "labels_frame")
        ids = getattr(self, "sample_ids_", np.arange(len(self.labels_)))
        name = getattr(self, "_id_name", "sample")
        columns = {"id" if name in ("cluster", "certainty") else name: ids, "cluster": self.labels_}
        if getattr(self, "certainty_", None) is not None:
            columns["certainty"] = self.certainty_  # type: ignore[attr-defined]
        return pandas.DataFrame(columns)
