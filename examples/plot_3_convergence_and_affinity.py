"""
Convergence and affinity
========================

What a fit records: the residuals of every iteration, and the affinity that was clustered.
"""

# %%
from polyspan import GRMSC
from polyspan.datasets import load_digits_views

data = load_digits_views(n_samples=300)
dense = GRMSC(n_clusters=10, random_state=0).fit(data.views)
sparse = GRMSC(n_clusters=10, affinity="sparse", random_state=0).fit(data.views)

# %%
# ``history_`` has one number per iteration for each residual: how far ``X`` is from ``X Z + E``,
# and ``Z`` from its low-rank copy. The solver stops when both are below ``tol``; if that does not
# happen within ``max_iter`` iterations, ``fit`` warns.
import matplotlib.pyplot as plt

from polyspan.figures import plot_affinity, plot_convergence

print({name: f"{values[-1]:.1e}" for name, values in dense.history_.items()}, dense.n_iter_)
figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
plot_convergence(dense.history_, tol=dense.tol, ax=ax)
plt.show()

# %%
# Samples sorted by cluster: blocks on the diagonal are samples represented by their own cluster.
# The dense affinity is the paper's. The sparse one keeps ten entries of every column, which removes
# the haze between the clusters.
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
for ax, model, name in zip(axes, (dense, sparse), ("dense", "sparse"), strict=True):
    plot_affinity(model.affinity_matrix_, model.labels_, ax=ax)
    ax.set_title(f"{name} affinity, sorted by cluster", loc="left", size=10)
plt.show()

# %%
# The fraction of the affinity inside the clusters:
for name, model in (("dense", dense), ("sparse", sparse)):
    W = model.affinity_matrix_
    W = W.toarray() if name == "sparse" else W
    inside = model.labels_[:, None] == model.labels_
    print(f"{name:7} {W[inside].sum() / W.sum():.2f}")
