"""The public names of polyspan, and the registry of its methods: one line each.

Type checkers read this file, and so does ``__init__.py``, which imports a name from its module when
it is first used. The lines of `polyspan.methods` make `METHODS`, in this order.
"""

from polyspan.annotation import annotate as annotate
from polyspan.methods import METHODS as METHODS
from polyspan.methods.grmsc import GRMSC as GRMSC
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC as AnchorGRMSC
from polyspan.methods.lrr import LRR as LRR
from polyspan.methods.rmsc import RMSC as RMSC
from polyspan.methods.dssmsc import DSSMSC as DSSMSC
from polyspan.methods.pssv import PSSV as PSSV
from polyspan.methods.jointgraph import JointGraph as JointGraph
from polyspan.methods.lmsc import LMSC as LMSC
from polyspan.methods.glmsc import GLMSC as GLMSC
from polyspan.methods.mlrssc import MLRSSC as MLRSSC
from polyspan.methods.amgl import AMGL as AMGL
from polyspan.methods.gmc import GMC as GMC
from polyspan.methods.mcgc import MCGC as MCGC
from polyspan.methods.gsf import GSF as GSF
from polyspan.methods.coregspectral import CoRegSpectral as CoRegSpectral
from polyspan.methods.cotrainspectral import CoTrainSpectral as CoTrainSpectral
from polyspan.methods.csmsc import CSMSC as CSMSC
from polyspan.methods.tsvdmsc import TSVDMSC as TSVDMSC
from polyspan.methods.ltmsc import LTMSC as LTMSC
from polyspan.methods.ssc import SSC as SSC
from polyspan.methods.dimsc import DiMSC as DiMSC
from polyspan.methods.mvsc import MVSC as MVSC
from polyspan.methods.meangraph import MeanGraph as MeanGraph
from polyspan.methods.selfgraph import SelfGraph as SelfGraph
from polyspan.methods.nemo import NEMO as NEMO
from polyspan.methods.snf import SNF as SNF
from polyspan.methods.cgd import CGD as CGD
from polyspan.methods.lmvsc import LMVSC as LMVSC
from polyspan.methods.fpmvs import FPMVS as FPMVS
from polyspan.methods.fastmice import FastMICE as FastMICE
from polyspan.methods.best_single_view import BestSingleView as BestSingleView
from polyspan.methods.baselines import ConcatKMeans as ConcatKMeans
from polyspan.methods.baselines import ConcatSpectral as ConcatSpectral
from polyspan.persistence import load_model as load_model
from polyspan.persistence import save_model as save_model
from polyspan.runtime.cache import sharing as sharing
from polyspan.selection.count import count_clusters as count_clusters
from polyspan.selection.estimator import ConsensusClusterer as ConsensusClusterer
from polyspan.solvers.loop import watching as watching

__version__: str
HOMES: dict[str, str]
