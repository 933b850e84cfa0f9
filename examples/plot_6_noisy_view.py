"""
A noisy view
============

Two views of the same subspaces. One is clean; the other gets noisier from left to right.
What happens to methods that use both?
"""

# %%
# Each fit uses the first view unchanged, and the second one with more and more noise.
import numpy as np

from polyspan import AMGL, GRMSC, LRR, ConcatKMeans, ConcatSpectral
from polyspan.datasets import make_subspaces
from polyspan.metrics import clustering_scores

clean = make_subspaces(n_samples=120, n_clusters=4, n_features=[30, 30], noise=0.3, random_state=0)
levels = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
junk = np.random.default_rng(0).standard_normal(clean.views[1].shape) / np.sqrt(30)

methods = {
    "GRMSC": GRMSC(n_clusters=4, random_state=0),
    "LRR, clean view only": LRR(n_clusters=4, random_state=0),
    "AMGL": AMGL(n_clusters=4, random_state=0),
    "ConcatSpectral": ConcatSpectral(n_clusters=4, random_state=0),
    "ConcatKMeans": ConcatKMeans(n_clusters=4, random_state=0),
}
scores = {}
for name, method in methods.items():
    scores[name] = []
    for level in levels:
        views = [clean.views[0], clean.views[1] + level * junk]
        labels = method.fit_predict(views[:1] if "only" in name else views)
        scores[name].append(clustering_scores(clean.labels, labels)["nmi"])
    print(f"{name:24}", "  ".join(f"{score:.2f}" for score in scores[name]))

# %%
# The dashed line ignores the second view: below it, the view did harm. GRMSC loses
# least here, but with twice as much noise as signal it, too, would do better without the view.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, values in scores.items():
    ax.plot(levels, values, "--" if "only" in name else "o-", label=name, ms=4)
ax.set_xscale("symlog", linthresh=0.5)
ax.set_xticks(levels, [f"{level:g}" for level in levels])
ax.set(
    xlabel="noise added to the second view, in lengths of a sample", ylabel="NMI", ylim=(0, 1.03)
)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, fontsize=8)
plt.show()
