"""A parameter's name means one thing: what, and in which methods, is written down here.

A new name fails until its meaning is entered; an old name in another method fails until that method
is entered beside the meaning, which must be the one it has there.
"""

import inspect
import re

import pytest

from polyspan import METHODS

SHARED = {  # any method may have them
    "n_clusters": "number of clusters",
    "views": "which columns of one X belong together",
    "random_state": "seed",
    "scale": "scaling of the samples",
    "n_init": "restarts of k-means",
    "max_iter": "most iterations",
    "tol": "residual below which the loop ends",
    "verbose": "print every so many iterations",
    "rho": "growth of the penalty mu",
    "mu0": "start of mu",
    "mu_max": "limit of mu",
    "device": "where to compute",
    "affinity": "all entries of Z, or the largest",
    "n_kept": "how many are the largest",
    "n_neighbors": "neighbors in the graphs of the views",
    "as_released": "follow the authors' program where it departs from the paper",
    "variant": "agreement by pairs of views, or with a common center",
}
OWN = {  # name: meaning, and the methods that have it
    "lam": ("weight of the errors", "lrr rmsc mlrssc tsvdmsc ltmsc mvsc"),
    "lam1": ("weight of the errors beside lam2", "grmsc anchorgrmsc"),
    "lam2": ("weight of the graphs", "grmsc anchorgrmsc"),
    "alpha": ("weight of the complementary against the consistent graph", "grmsc anchorgrmsc"),
    "lam_ratio": ("lam as a multiple of the least at which no sample stays alone", "ssc"),
    "lam_rank": ("weight of the nuclear norm", "lmsc ltmsc"),
    "lam_ridge": ("weight of a squared norm of the representation or graph", "lmvsc gsf"),
    "lam_agreement": ("weight of the agreement between views", "mlrssc coregspectral mcgc gsf"),
    "lam_components": ("first weight of the term that makes c components", "gmc mcgc"),
    "n_candidates": ("samples that a sample may be linked to", "gsf"),
    "lam_cut": ("weight of the cut of the graphs, tr(F^T L F)", "mvsc"),
    "lam_c": ("weight of the common part", "csmsc"),
    "lam_d": ("weight of the parts of single views", "csmsc"),
    "lam_s": ("weight of the smoothness on graphs", "dimsc"),
    "lam_v": ("weight of the diversity of the views", "dimsc"),
    "lam_identity": ("weight of the distance of a graph from the identity", "cgd"),
    "mu": ("width of a kernel in distances around two samples", "nemo snf"),
    "weights": ("weights of the links in neighbor graphs", "meangraph"),
    "rank_share": ("share of the nuclear norm, the rest is that of the l1 norm", "mlrssc"),
    "kernel": ("inner products, or a Gaussian kernel", "mlrssc"),
    "sigma": ("width of that kernel in median distances", "mlrssc"),
    "sample_order": ("order of the samples in the solver", "tsvdmsc"),
    "second_width": ("width of the second-order Gaussian", "grmsc anchorgrmsc"),
    "smoothing": ("steps towards the neighbors", "anchorgrmsc"),
    "orientation": ("graphs on the columns of Z, or on its rows", "grmsc"),
    "regularizer": ("which graphs", "grmsc"),
    "graph_scale": ("scaling of the features of the graphs", "grmsc"),
    "view_weights": ("weight of every view", "grmsc cgd"),
    "precomputed": ("whether views are kernels", "grmsc"),
    "graphs": ("first-order graphs that are given", "grmsc"),
    "n_anchors": ("number of anchors", "anchorgrmsc lmvsc fastmice"),
    "n_members": ("clusterings in an ensemble", "fastmice"),
    "anchors": ("how anchors are chosen, or which samples they are", "anchorgrmsc"),
    "dtype": ("numbers of the solver", "anchorgrmsc"),
    "chunk_size": ("samples worked on at a time", "anchorgrmsc"),
    "n_jobs": ("threads", "anchorgrmsc"),
    "normalize": ("divide the links of an anchor by the root of their sum", "lmvsc"),
    "latent_dim": ("dimension of the latent representation", "lmsc"),
    "n_projected": ("eigenvectors onto which the kernels are projected", "cotrainspectral"),
    "n_rounds": ("rounds in which the views pass on what they know", "cotrainspectral snf cgd"),
    "max_inner": ("most iterations of the inner loop", "mvsc"),
    "labels_from": ("cluster the graph, or the indicator", "mvsc"),
    "estimator": ("the method that is run on every view", "bestsingleview"),
    "oracle": ("choose the view by the true labels", "bestsingleview"),
}

# Letters of the objectives that no parameter sets by itself.
ELSEWHERE = {"ssc": ["lam"]}


def owners():
    """Methods by the names of their parameters."""
    found = {}
    for name, cls in METHODS.items():
        for param in cls().get_params(deep=False):
            found.setdefault(param, set()).add(name)
    return found


def test_every_name_has_its_one_meaning():
    own = {param: names for param, names in owners().items() if param not in SHARED}
    assert own == {param: set(names.split()) for param, (_, names) in OWN.items()}
    assert set(SHARED) <= set(owners())
    meanings = [*SHARED.values(), *(meaning for meaning, _ in OWN.values())]
    assert len(set(meanings)) == len(meanings)  # nor has a meaning two names


@pytest.mark.parametrize("name", METHODS)
def test_objectives_have_the_names_of_parameters(name):
    cls = METHODS[name]
    known = {*cls().get_params(deep=False), *ELSEWHERE.get(name, ())}
    for text in (cls.about.objective, cls.about.needs, inspect.getmodule(cls).__doc__):
        used = set(re.findall(r"\b(?:lam\w*|beta\d?|rank_share)\b", text))
        assert used <= known
