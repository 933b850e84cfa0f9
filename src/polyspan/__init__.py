"""polyspan: multi-view subspace clustering."""

from polyspan.methods import METHODS
from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.best_single_view import BestSingleView
from polyspan.methods.grmsc import GRMSC
from polyspan.methods.lrr import LRR

__version__ = "0.1.0"
__all__ = ["GRMSC", "LRR", "METHODS", "BestSingleView", "ConcatKMeans", "ConcatSpectral"]
