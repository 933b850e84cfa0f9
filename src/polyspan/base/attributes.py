"""The attributes that a fit sets."""

# Private attributes that a fit keeps for `predict`.
HIDDEN = frozenset(
    {
        "_bipartite",
        "_centers",
        "_dictionary",
        "_drawn",
        "_frame",
        "_id_name",
        "_kernel_maps",
        "_moments",
        "_near",
        "_root",
        "_scaling",
        "_view_columns",
        "_view_scales",
        "_view_widths",
    }
)
# Attributes that `check` sets; `fit` sets the others and removes those of an earlier fit.
CHECKED = frozenset(
    {
        "_id_name",
        "_kernel_maps",
        "_view_columns",
        "_view_widths",
        "feature_names_in_",
        "n_features_in_",
        "sample_ids_",
        "view_names_",
    }
)


def is_fitted(name: str) -> bool:
    """Whether an attribute of this name is set by a fit: it ends in _ or is one of `HIDDEN`.

    Examples
    --------
    >>> [is_fitted(name) for name in ("labels_", "_root", "_check_params", "fit", "__class__")]
    [True, True, False, False, False]
    """
    shown = name.isidentifier() and name.endswith("_") and not name.startswith("_")
    return shown or name in HIDDEN
