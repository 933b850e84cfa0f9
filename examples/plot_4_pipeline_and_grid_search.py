"""
Pipelines and grid search
=========================

scikit-learn's tools expect one matrix. Every method accepts one, if ``views`` says which columns
belong together.
"""

# %%
import numpy as np

from polyspan import GRMSC
from polyspan.datasets import make_subspaces

data = make_subspaces(
    n_samples=120, n_clusters=4, n_features=[20, 40], noise=0.6, outliers=0.1, random_state=3
)
X = np.hstack(data.views)
model = GRMSC(n_clusters=4, views=[slice(0, 20), slice(20, 60)], random_state=0)
print(X.shape)

# %%
# In a pipeline it comes last:
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyspan.metrics import clustering_scores

pipeline = make_pipeline(StandardScaler(), model)
print(f"NMI {clustering_scores(data.labels, pipeline.fit_predict(X))['nmi']:.3f}")

# %%
# A grid search needs a score, and here the score needs the true classes: this is tuning with the
# answers known, useful only for comparisons. Clustering has no held-out samples, so the one split
# has all samples on both sides.
from sklearn.model_selection import GridSearchCV


def nmi(fitted, X, y):
    return clustering_scores(y, fitted.labels_)["nmi"]


everything = np.arange(len(X))
grid = {"lam1": [0.1, 1.0, 10.0, 100.0], "n_neighbors": [5, 10, 20, 30, 60]}
search = GridSearchCV(model, grid, scoring=nmi, cv=[(everything, everything)])
search.fit(X, data.labels)
print(search.best_params_, f"NMI {search.best_score_:.3f}")

# %%
import matplotlib.pyplot as plt

scores = search.cv_results_["mean_test_score"].reshape(4, 5)
figure, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
image = ax.imshow(scores, cmap="Blues")
ax.set_xticks(range(5), grid["n_neighbors"])
ax.set_yticks(range(4), [f"{value:g}" for value in grid["lam1"]])
ax.set(xlabel="n_neighbors", ylabel="lam1", title="NMI")
figure.colorbar(image)
plt.show()
