"""
Comparing methods
=================

All methods take the same views and have the same interface, so comparing them takes one loop.
The data are planted: three subspaces in two views, with noise and some outliers.
One data set and one seed prove little; for a real comparison run several seeds on several data
sets, as ``benchmarks/`` in the repository does.
"""

# %%
import time

from polyspan import METHODS
from polyspan.datasets import make_subspaces
from polyspan.metrics import clustering_scores

data = make_subspaces(
    n_samples=150, n_clusters=3, n_features=[30, 60], noise=0.6, outliers=0.05, random_state=1
)

# %%
# Every method runs with its defaults; `BestSingleView` covers those for a single view.
chosen = ["grmsc", "rmsc", "amgl", "gmc", "csmsc", "ltmsc", "bestsingleview"]
chosen += ["concatspectral", "concatkmeans"]
found = {}
for name in chosen:
    method = METHODS[name](n_clusters=3, random_state=0)
    started = time.perf_counter()
    labels = method.fit_predict(data.views)
    seconds = time.perf_counter() - started
    nmi = clustering_scores(data.labels, labels)["nmi"]
    found[METHODS[name].__name__] = nmi, seconds
    print(f"{METHODS[name].__name__:16} NMI {nmi:.3f}   {seconds:5.2f} s")

# %%
# The gray bars are the baselines, which concatenate all features. On these data the spectral one is
# hard to beat, and k-means fails: samples of one subspace need not be close to each other.
import matplotlib.pyplot as plt

order = sorted(found, key=found.get)
scores = [found[name][0] for name in order]
colors = ["#8a94a3" if name.startswith("Concat") else "#1f6fb4" for name in order]
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.barh(order, scores, color=colors)
ax.set(xlim=(0, 1), xlabel="normalized mutual information")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
