"""One file per paper; METHODS lists all methods."""

from typing import Any

from polyspan.base import MultiViewClusterer
from polyspan.methods.amgl import AMGL
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC
from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.best_single_view import BestSingleView
from polyspan.methods.cgd import CGD
from polyspan.methods.coregspectral import CoRegSpectral
from polyspan.methods.cotrainspectral import CoTrainSpectral
from polyspan.methods.csmsc import CSMSC
from polyspan.methods.dimsc import DiMSC
from polyspan.methods.fastmice import FastMICE
from polyspan.methods.fpmvs import FPMVS
from polyspan.methods.gmc import GMC
from polyspan.methods.grmsc import GRMSC
from polyspan.methods.gsf import GSF
from polyspan.methods.lmsc import LMSC
from polyspan.methods.lmvsc import LMVSC
from polyspan.methods.lrr import LRR
from polyspan.methods.ltmsc import LTMSC
from polyspan.methods.mcgc import MCGC
from polyspan.methods.meangraph import MeanGraph
from polyspan.methods.mlrssc import MLRSSC
from polyspan.methods.mvsc import MVSC
from polyspan.methods.nemo import NEMO
from polyspan.methods.rmsc import RMSC
from polyspan.methods.snf import SNF
from polyspan.methods.ssc import SSC
from polyspan.methods.tsvdmsc import TSVDMSC
from polyspan.runtime.messages import unknown_name


class Methods(dict[str, type[MultiViewClusterer]]):
    """The classes by their names in lower case; the case of a name does not matter.

    Examples
    --------
    >>> METHODS["GRMSC"] is METHODS["grmsc"], "CoRegSpectral" in METHODS, list(METHODS)[0]
    (True, True, 'grmsc')
    """

    def __missing__(self, name: Any) -> type[MultiViewClusterer]:
        if name not in self:
            raise KeyError(unknown_name("method", name, self))
        return self[name.lower()]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name.lower() if isinstance(name, str) else name)

    def get(self, name: Any, default: Any = None) -> Any:
        """Return the class of this name, or ``default``."""
        return super().get(name.lower() if isinstance(name, str) else name, default)


METHODS = Methods(
    (cls.__name__.lower(), cls)
    for cls in (
        GRMSC,
        AnchorGRMSC,
        LRR,
        RMSC,
        LMSC,
        MLRSSC,
        AMGL,
        GMC,
        MCGC,
        GSF,
        CoRegSpectral,
        CoTrainSpectral,
        CSMSC,
        TSVDMSC,
        LTMSC,
        SSC,
        DiMSC,
        MVSC,
        MeanGraph,
        NEMO,
        SNF,
        CGD,
        LMVSC,
        FPMVS,
        FastMICE,
        BestSingleView,
        ConcatKMeans,
        ConcatSpectral,
    )
)
