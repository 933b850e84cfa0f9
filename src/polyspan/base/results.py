"""What every fitted estimator can tell of its samples."""

import ast
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.inputs.optional import require
from polyspan.inputs.tables import KnownView


class Results:
    """Labels as an array and as a table."""

    labels_: np.ndarray
    view_names_: list[str]

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

    def known_views(self) -> list[KnownView]:
        """What new samples must have to be predicted: the views and features of the fit.

        Returns
        -------
        list of KnownView
            For every view ``key``, its name in a dictionary of views; ``width``, the number of
            its features; ``columns``, their names, or None; and ``medians`` of the fitted
            samples, or None where the model does not keep these.

        Examples
        --------
        >>> from polyspan import ConcatKMeans
        >>> model = ConcatKMeans(2, random_state=0).fit({"rna": np.eye(3), "protein": np.eye(3)})
        >>> [view.key for view in model.known_views()]
        ['rna', 'protein']
        """
        check_is_fitted(self, "labels_")
        columns = getattr(self, "_view_columns", {})
        widths: list[int] = self._view_widths  # type: ignore[attr-defined]
        return [
            KnownView(_key(name), d, columns.get(name), None)
            for name, d in zip(self.view_names_, widths, strict=True)
        ]

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


def _key(name: str) -> Any:
    """The key of a view in a dictionary, from its name in messages."""
    try:
        return ast.literal_eval(name)
    except (ValueError, SyntaxError):
        return name
