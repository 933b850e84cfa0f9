"""The kinds of method by what they share: scaled views, a loop, a penalty, a device."""

from typing import Any, ClassVar

from polyspan.base.spine import MultiViewClusterer
from polyspan.inputs.params import device_or_none, integer, param, per_view, positive, real
from polyspan.inputs.scaling import (
    SCALES,
    Scale,
    Scaling,
    check_products,
    check_varied,
    scale_views,
    scaling_per_view,
)
from polyspan.inputs.views import Views
from polyspan.solvers.arrays import Array
from polyspan.solvers.loop import Run


class ScaledClusterer(MultiViewClusterer):
    """Methods that scale the views and end in k-means: all except those that wrap others."""

    solves_products: ClassVar[bool] = False  # whether the solver uses X^T X + I

    scale: Scale = param(per_view(*SCALES), default="unit")
    n_init: int = param(integer(1), default=20)

    def scaled(self, views: Views) -> list[Array]:
        """Scale checked views and move them to ``device``, if there is one."""
        scales = self._scalings(views)
        if self.solves_products:
            check_products(views, scales)
        return scale_views(views, scales, device=getattr(self, "device", None))

    def _check_scaled(self, views: Views, Xs: list[Array]) -> None:
        """Refuse views that are constant after scaling."""
        check_varied(Xs, views.names, self._scalings(views))

    def _scalings(self, views: Views, name: str = "scale") -> list[Scaling]:
        """One scaling for each of the prepared views, without those of views of weight 0."""
        scale, weights = getattr(self, name), getattr(self, "view_weights", None)
        if isinstance(scale, list | tuple) and not isinstance(weights, str | None):
            scale = [one for one, w in zip(scale, weights, strict=True) if w > 0]
        found = scaling_per_view(scale, len(views.arrays))
        if "same" not in found:
            return found
        both = zip(found, self._scalings(views), strict=True)
        return [usual if own == "same" else own for own, usual in both]


class Iterative(ScaledClusterer):
    """Methods with a loop that ends when the residuals are below ``tol``."""

    max_iter: int = param(integer(1), default=100)
    tol: float = param(real(0), default=1e-6)
    verbose: int = param(integer(0), default=0)

    def _run(self) -> Run:
        """Return the loop, which counts, records, prints if ``verbose``, and stops."""
        return Run(type(self).__name__, self.max_iter, self.tol, self.verbose)


class Penalized(Iterative):
    """Augmented Lagrangians: the penalty mu starts at mu0 and grows by rho up to mu_max."""

    rho: float = param(real(1), default=1.9)
    mu0: float | None = param(positive, default=1e-4)
    mu_max: float = param(positive, default=1e6)

    def _penalty(self) -> dict[str, Any]:
        return {"rho": self.rho, "mu0": self.mu0, "mu_max": self.mu_max}


class OnDevice(ScaledClusterer):
    """Methods whose solver can run on another device than the CPU."""

    device: str | None = param(device_or_none, default=None)
