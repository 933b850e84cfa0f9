"""One file per paper; METHODS is the only registry."""

from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.best_single_view import BestSingleView
from polyspan.methods.grmsc import GRMSC
from polyspan.methods.lrr import LRR

METHODS = {
    cls.__name__.lower(): cls for cls in (GRMSC, LRR, BestSingleView, ConcatKMeans, ConcatSpectral)
}
