"""polyspan: multi-view subspace clustering.

A name is imported when it is first used: `import polyspan` alone, and the help of the command, cost
next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyspan.annotation import annotate
    from polyspan.methods import METHODS
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
    from polyspan.persistence import load_model, save_model
    from polyspan.runtime.cache import sharing
    from polyspan.selection.count import count_clusters
    from polyspan.selection.estimator import ConsensusClusterer
    from polyspan.solvers.loop import watching

__version__ = "0.1.0"
__all__ = [
    "AMGL",
    "CGD",
    "CSMSC",
    "FPMVS",
    "GMC",
    "GRMSC",
    "GSF",
    "LMSC",
    "LMVSC",
    "LRR",
    "LTMSC",
    "MCGC",
    "METHODS",
    "MLRSSC",
    "MVSC",
    "NEMO",
    "RMSC",
    "SNF",
    "SSC",
    "TSVDMSC",
    "AnchorGRMSC",
    "BestSingleView",
    "CoRegSpectral",
    "CoTrainSpectral",
    "ConcatKMeans",
    "ConcatSpectral",
    "ConsensusClusterer",
    "DiMSC",
    "FastMICE",
    "MeanGraph",
    "annotate",
    "count_clusters",
    "load_model",
    "save_model",
    "sharing",
    "watching",
]

_HOMES = {  # where the names are written
    "AMGL": "polyspan.methods.amgl",
    "CGD": "polyspan.methods.cgd",
    "CSMSC": "polyspan.methods.csmsc",
    "FPMVS": "polyspan.methods.fpmvs",
    "GMC": "polyspan.methods.gmc",
    "GRMSC": "polyspan.methods.grmsc",
    "GSF": "polyspan.methods.gsf",
    "LMSC": "polyspan.methods.lmsc",
    "LMVSC": "polyspan.methods.lmvsc",
    "LRR": "polyspan.methods.lrr",
    "LTMSC": "polyspan.methods.ltmsc",
    "MCGC": "polyspan.methods.mcgc",
    "METHODS": "polyspan.methods",
    "MLRSSC": "polyspan.methods.mlrssc",
    "MVSC": "polyspan.methods.mvsc",
    "NEMO": "polyspan.methods.nemo",
    "RMSC": "polyspan.methods.rmsc",
    "SNF": "polyspan.methods.snf",
    "SSC": "polyspan.methods.ssc",
    "TSVDMSC": "polyspan.methods.tsvdmsc",
    "AnchorGRMSC": "polyspan.methods.anchor_grmsc.estimator",
    "BestSingleView": "polyspan.methods.best_single_view",
    "CoRegSpectral": "polyspan.methods.coregspectral",
    "CoTrainSpectral": "polyspan.methods.cotrainspectral",
    "ConcatKMeans": "polyspan.methods.baselines",
    "ConcatSpectral": "polyspan.methods.baselines",
    "ConsensusClusterer": "polyspan.selection.estimator",
    "DiMSC": "polyspan.methods.dimsc",
    "FastMICE": "polyspan.methods.fastmice",
    "MeanGraph": "polyspan.methods.meangraph",
    "annotate": "polyspan.annotation",
    "count_clusters": "polyspan.selection.count",
    "load_model": "polyspan.persistence",
    "save_model": "polyspan.persistence",
    "sharing": "polyspan.runtime.cache",
    "watching": "polyspan.solvers.loop",
}
_ROOMS = (  # what `import polyspan` alone gives besides
    "atomic",
    "audit",
    "base",
    "chunked",
    "clustering",
    "explain",
    "graphs",
    "inputs",
    "methods",
    "persistence",
    "solvers",
)


if not TYPE_CHECKING:  # type checkers know the names from the imports above, and no others

    def __getattr__(name: str) -> Any:
        if name in _ROOMS:
            import_module("polyspan.methods")  # uses them: what is in the rooms is there, too
            return import_module(f"polyspan.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value  # found without this function from now on
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
