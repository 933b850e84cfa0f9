"""What a fitted model can tell of its clusters: features, known columns, survival."""

from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from sklearn.base import clone

from polyspan.explain.associations import Association, associations
from polyspan.explain.given import ids_of, named_views
from polyspan.explain.known import match_known, read_known
from polyspan.explain.markers import Markers, markers_of
from polyspan.explain.survival import Survival, survival
from polyspan.inputs.views import Views
from polyspan.io.samples import is_frame


class Explanation(NamedTuple):
    """What the clusters are.

    Attributes
    ----------
    markers : Markers
        Features that tell a cluster from the rest.
    known : list of Association
        Clusters against the known columns; empty if none were given.
    survival : Survival or None
        Curves and log-rank test, if asked for.
    """

    markers: Markers
    known: list[Association]
    survival: Survival | None

    def frames(self) -> dict[str, Any]:
        """Tables as pandas.DataFrame, by name."""
        found = {"markers": self.markers.frame()}
        if self.known:
            found["known"] = pd.DataFrame([one.row() for one in self.known])
        if self.survival is not None:
            found["survival"] = pd.DataFrame(self.survival.columns())
        return found


def explain_model(
    model: Any,
    X: Any,
    *,
    held_out_view: bool = False,
    known: Any = None,
    times: tuple[str, str] | None = None,
) -> Explanation:
    """Explain the clusters of a fitted model; ``model.explain`` has the parameters.

    Examples
    --------
    >>> from polyspan import ConcatKMeans
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(60, 3, random_state=0)
    >>> model = ConcatKMeans(3, random_state=0).fit(data)
    >>> found = explain_model(model, data, known={"class": data.labels})
    >>> found.known[0].column, list(found.frames())
    ('class', ['markers', 'known'])
    """
    views = named_views(X, model.views)
    columns = open_known(known, views)
    estimator = clone(model) if held_out_view else None
    found = markers_of(views, model.labels_, held_out_view, estimator)
    used = {name: one for name, one in columns.items() if name not in (times or ())}
    lived = None
    if times is not None:
        for name in times:
            if name not in columns:
                raise ValueError(f"survival: {name!r} is none of the known columns.")
        lived = survival(model.labels_, *(columns[name] for name in times))
    return Explanation(found, associations(model.labels_, used) if used else [], lived)


def open_known(known: Any, views: Views) -> dict[str, Any]:
    """Known columns in the order of the samples: from a file, a table with ids, or a mapping."""
    if known is None:
        return {}
    ids = None if views.samples is None else ids_of(views)
    if isinstance(known, str | Path):
        return read_known(known, ids, views.n_samples).columns
    if hasattr(known, "to_frame") and not is_frame(known):  # a column of pandas
        known = known.to_frame("known" if known.name is None else known.name)
    if is_frame(known):
        columns = {str(name): known[name].tolist() for name in known}
        if ids is not None:
            columns = {"index": known.index.tolist(), **columns}
        return match_known(columns, ids, views.n_samples, "known").columns
    return dict(known)
