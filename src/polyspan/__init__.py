"""polyspan: multi-view subspace clustering."""

from polyspan.methods import METHODS
from polyspan.methods.amgl import AMGL
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC
from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.best_single_view import BestSingleView
from polyspan.methods.coregspectral import CoRegSpectral
from polyspan.methods.cotrainspectral import CoTrainSpectral
from polyspan.methods.csmsc import CSMSC
from polyspan.methods.dimsc import DiMSC
from polyspan.methods.fpmvs import FPMVS
from polyspan.methods.gmc import GMC
from polyspan.methods.grmsc import GRMSC
from polyspan.methods.lmsc import LMSC
from polyspan.methods.lmvsc import LMVSC
from polyspan.methods.lrr import LRR
from polyspan.methods.ltmsc import LTMSC
from polyspan.methods.mcgc import MCGC
from polyspan.methods.mlrssc import MLRSSC
from polyspan.methods.mvsc import MVSC
from polyspan.methods.rmsc import RMSC
from polyspan.methods.ssc import SSC
from polyspan.methods.tsvdmsc import TSVDMSC
from polyspan.persistence import load, save

__version__ = "0.1.0"
__all__ = [
    "AMGL",
    "CSMSC",
    "FPMVS",
    "GMC",
    "GRMSC",
    "LMSC",
    "LMVSC",
    "LRR",
    "LTMSC",
    "MCGC",
    "METHODS",
    "MLRSSC",
    "MVSC",
    "RMSC",
    "SSC",
    "TSVDMSC",
    "AnchorGRMSC",
    "BestSingleView",
    "CoRegSpectral",
    "CoTrainSpectral",
    "ConcatKMeans",
    "ConcatSpectral",
    "DiMSC",
    "load",
    "save",
]
