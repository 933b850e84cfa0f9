"""What every fitted estimator can tell of its samples."""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyspan.inputs.optional import require
from polyspan.inputs.tables import KnownView

# The views that a model was fitted on, as they were given, for `explain` and `report`. Not in the
# model, so that copies and files of it do not carry the data; gone when the model is.
FITTED_ON: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


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

    def explain(
        self,
        X: Any = None,
        *,
        held_out_view: bool = False,
        known: Any = None,
        survival: tuple[str, str] | None = None,
    ) -> Any:
        """What the clusters are: their features, and how they relate to what is known.

        Parameters
        ----------
        X : as in `fit`, optional
            The views; those of the fit if None (a model that was loaded or copied has none).
        held_out_view : bool, default=False
            Compare the features of each view between clusters that a copy of this model finds in
            the other views; honest, and as slow as a fit for every view. See
            `polyspan.explain.markers`.
        known : file, table or mapping of columns, optional
            What is known of the samples, matched by id where a file or a pandas.DataFrame and the
            views have ids; a mapping has its values in the order of the samples.
        survival : (str, str), optional
            The known columns that hold time and event (needs lifelines, the extra ``survival``).

        Returns
        -------
        polyspan.explain.Explanation
            ``markers``, ``known`` and ``survival``; ``frames()`` has them as tables.

        Examples
        --------
        >>> from polyspan import ConcatKMeans
        >>> from polyspan.datasets import make_subspaces
        >>> data = make_subspaces(60, 3, random_state=0)
        >>> found = ConcatKMeans(3, random_state=0).fit(data).explain(known={"k": data.labels})
        >>> len(found.markers.feature), found.known[0].kind
        (180, 'classes')
        """
        X = self._views_of(X, "explain")
        # Above this room: only a user's call leads there.
        room = import_module("polyspan.explain")
        return room.explain_model(self, X, held_out_view=held_out_view, known=known, times=survival)

    def report(
        self,
        path: str | Path,
        X: Any = None,
        *,
        known: Any = None,
        survival: tuple[str, str] | None = None,
        **options: Any,
    ) -> Path:
        """Write one HTML file that shows what the clusters are and how sure one may be.

        Parameters
        ----------
        path : path
            The file; its folder must exist.
        X : as in `fit`, optional
            The views; those of the fit if None (a model that was loaded or copied has none).
        known, survival : as in `explain`
        **options
            ``title``, ``notes``, ``figures`` (a folder for every figure and table) and ``force``,
            see `polyspan.report.write_report`.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        >>> import tempfile
        >>> from polyspan import ConcatKMeans
        >>> from polyspan.datasets import make_subspaces
        >>> model = ConcatKMeans(3, random_state=0).fit(make_subspaces(60, 3, random_state=0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(f"{folder}/report.html").name
        'report.html'
        """
        X = self._views_of(X, "report")
        room = import_module("polyspan.explain")
        given = room.open_given(X, getattr(self, "views", None))
        return import_module("polyspan.report").write_report(
            path,
            views=given.views.arrays,
            view_names=given.view_names,
            sample_ids=given.ids,
            estimator=self,
            feature_names=given.feature_names,
            known=room.open_known(known, given),
            survival=survival,
            **options,
        )

    def _views_of(self, X: Any, name: str) -> Any:
        """The views that were given, or those of the fit."""
        check_is_fitted(self, "labels_")
        if X is None:
            X = FITTED_ON.get(self)
        if X is None:
            raise ValueError(
                f"{name}: this model was loaded or copied and has no views: pass those of the fit."
            )
        return X


def _key(name: str) -> Any:
    """The key of a view in a dictionary, from its name in messages."""
    try:
        return ast.literal_eval(name)
    except (ValueError, SyntaxError):
        return name
