"""
Sharing a grid
==============

Settings on the same data have much in common: the reduced views, the graphs, a factorization.
Inside ``with sharing():`` these are computed only once. The results are the same.
"""

# %%
from itertools import product

import numpy as np

from polyspan import GRMSC, sharing
from polyspan.datasets import load_digits_views

data = load_digits_views(n_samples=300)
lam1s, lam2s = (1.0, 10.0, 100.0), (10.0, 100.0, 1000.0)


def fit(lam1, lam2, affinity="dense"):
    model = GRMSC(n_clusters=10, lam1=lam1, lam2=lam2, affinity=affinity, random_state=0)
    model.set_params(tol=1e-4)  # enough to compare settings
    return model.fit(data.views)


# %%
# Nine settings share their graphs and one factorization. The sparse affinities cost only the
# clustering: the representation is that of the dense fit.
with sharing() as store:
    dense = {pair: fit(*pair) for pair in product(lam1s, lam2s)}
    sparse = {pair: fit(*pair, "sparse") for pair in dense}
print(f"18 fits; sharing saved {store.saved:.1f} s")

# %%
alone = fit(1.0, 10.0)
print("same labels as alone:", np.array_equal(alone.labels_, dense[1.0, 10.0].labels_))

# %%
# How well the settings agree with each other, without any labels: a setting that few others agree
# with, such as lam1 = 100 and lam2 = 10 here, is probably an accident. Choosing without labels
# is based on this idea.
import matplotlib.pyplot as plt

from polyspan.metrics import clustering_scores

fits = [*dense.values(), *sparse.values()]
agreement = np.array([[clustering_scores(a.labels_, b.labels_)["nmi"] for a in fits] for b in fits])
names = [f"{kind} {lam1:g}, {lam2:g}" for kind in ("dense", "sparse") for lam1, lam2 in dense]
figure, ax = plt.subplots(figsize=(6.2, 5.2), layout="constrained")
image = ax.imshow(agreement, cmap="Blues", vmax=1)
ax.set_yticks(range(18), names, size=8)
ax.set_xticks([])
ax.set_title("agreement of the settings lam1, lam2 (NMI)", loc="left", size=10)
figure.colorbar(image)
plt.show()
