"""A parameter's name means one thing: what it means is written down here.

A name that one method has is its own affair. A second method that takes it must mean the same: the
name fails until its meaning is entered.
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
MEANINGS = {  # of names that several methods share, or might
    "lam": "weight of the errors",
    "lam1": "weight of the errors beside lam2",
    "lam2": "weight of the graphs",
    "alpha": "weight of the complementary against the consistent graph",
    "lam_ratio": "lam as a multiple of the least at which no sample stays alone",
    "lam_rank": "weight of the nuclear norm",
    "lam_ridge": "weight of a squared norm of the representation or graph",
    "lam_agreement": "weight of the agreement between views",
    "lam_components": "first weight of the term that makes c components",
    "n_candidates": "samples that a sample may be linked to",
    "lam_cut": "weight of the cut of the graphs, tr(F^T L F)",
    "lam_c": "weight of the common part",
    "lam_d": "weight of the parts of single views",
    "lam_s": "weight of the smoothness on graphs",
    "lam_v": "weight of the diversity of the views",
    "lam_identity": "weight of the distance of a graph from the identity",
    "mu": "width of a kernel in distances around two samples",
    "weights": "weights of the links in neighbor graphs",
    "rank_share": "share of the nuclear norm, the rest is that of the l1 norm",
    "kernel": "inner products, or a Gaussian kernel",
    "sigma": "width of that kernel in median distances",
    "sample_order": "order of the samples in the solver",
    "second_width": "width of the second-order Gaussian",
    "smoothing": "steps towards the neighbors",
    "orientation": "graphs on the columns of Z, or on its rows",
    "regularizer": "which graphs",
    "graph_scale": "scaling of the features of the graphs",
    "view_weights": "weight of every view",
    "precomputed": "whether views are kernels",
    "graphs": "first-order graphs that are given",
    "n_anchors": "number of anchors",
    "n_members": "clusterings in an ensemble",
    "anchors": "how anchors are chosen, or which samples they are",
    "dtype": "numbers of the solver",
    "chunk_size": "samples worked on at a time",
    "n_jobs": "threads",
    "normalize": "divide the links of an anchor by the root of their sum",
    "latent_dim": "dimension of the latent representation",
    "n_projected": "eigenvectors onto which the kernels are projected",
    "n_rounds": "rounds in which the views pass on what they know",
    "max_inner": "most iterations of the inner loop",
    "labels_from": "cluster the graph, or the indicator",
    "estimator": "the method that is run on every view",
    "oracle": "choose the view by the true labels",
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


def test_a_name_that_methods_share_has_one_meaning():
    shared = {param for param, names in owners().items() if len(names) > 1}
    assert shared <= SHARED.keys() | MEANINGS.keys()
    assert SHARED.keys() | MEANINGS.keys() <= owners().keys()
    meanings = [*SHARED.values(), *MEANINGS.values()]
    assert len(set(meanings)) == len(meanings)  # nor has a meaning two names


@pytest.mark.parametrize("name", METHODS)
def test_objectives_have_the_names_of_parameters(name):
    cls = METHODS[name]
    known = {*cls().get_params(deep=False), *ELSEWHERE.get(name, ())}
    for text in (cls.about.objective, cls.about.needs, inspect.getmodule(cls).__doc__):
        used = set(re.findall(r"\b(?:lam\w*|beta\d?|rank_share)\b", text))
        assert used <= known
