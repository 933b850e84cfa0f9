"""
A first clustering
==================

Handwritten digits in three views: pixels, Fourier magnitudes and edge directions.
GRMSC learns from all three how each digit can be represented by the others, and clusters that.
"""

# %%
# The digits come with scikit-learn. A view is a table with the samples in rows.
from polyspan.datasets import load_digits_views

data = load_digits_views(n_samples=400)
for name, view in zip(data.view_names, data.views, strict=True):
    print(f"{name:10} {view.shape[0]} samples, {view.shape[1]} features")

# %%
# The sparse affinity keeps the ten strongest links of every sample.
from polyspan import GRMSC

model = GRMSC(n_clusters=10, affinity="sparse", random_state=0)
labels = model.fit_predict(data.views)
print(f"{model.n_iter_} iterations")

# %%
# The true digits are known here, so the clusters can be scored. They were not used above.
from polyspan.metrics import clustering_scores

for name, score in clustering_scores(data.labels, labels).items():
    print(f"{name:12} {score:.3f}")

# %%
# One row per cluster; a frame marks a digit that differs from the majority of its cluster.
import matplotlib.pyplot as plt
import numpy as np

from polyspan.figures import plot_image_clusters

majority = np.array([np.bincount(data.labels[labels == c]).argmax() for c in range(10)])
figure, ax = plt.subplots(figsize=(6.4, 5), layout="constrained")
plot_image_clusters(
    data.views[0].reshape(-1, 8, 8),
    labels,
    wrong=data.labels != majority[labels],
    n_shown=14,
    ax=ax,
)
plt.show()
