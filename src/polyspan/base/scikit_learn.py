"""The base classes of scikit-learn, which has no types: for type checkers, what is used of them."""

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters."""

        def set_params(self, **params: Any) -> Self:
            """Change parameters."""

        def __sklearn_tags__(self) -> Any: ...

        def __getstate__(self) -> dict[str, Any]: ...

        def _repr_html_(self) -> str: ...

        def _repr_mimebundle_(self, **options: Any) -> dict[str, str]: ...

    class ClusterMixin:
        """Estimators with ``labels_``."""

else:
    from sklearn.base import BaseEstimator, ClusterMixin

__all__ = ["BaseEstimator", "ClusterMixin"]
