"""
What the clusters are
=====================

Which features set the clusters apart, how far to trust them, and how the clusters relate to what is
known of the samples. The data are planted, like a small multi-omics study: genes and lipids of 90
mice on three diets. ``load_dataset("nutrimouse")`` has real ones.
"""

# %%
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
diet = np.array(["coconut", "fish", "sunflower"])[np.arange(90) % 3]
mice = [f"mouse{i}" for i in range(90)]
tables = {}
for name, n_features in (("gene", 120), ("lipid", 30)):
    values = rng.standard_normal((90, n_features)) + 8
    for j in range(9):  # nine features differ between the diets
        values[:, j] += 2 * (np.arange(90) % 3 == j % 3)
    columns = [f"{name}{j}" for j in range(n_features)]
    tables[name] = pd.DataFrame(values, index=mice, columns=columns)
known = pd.DataFrame({"diet": diet, "weight": rng.normal(25, 2, 90)}, index=mice)

# %%
# The diets are not used for the clustering.
from polyspan import MeanGraph

model = MeanGraph(n_clusters=3, scale="standard+unit", random_state=0).fit(tables)
found = model.explain(known=known)
for one in found.known:
    print(f"{one.column:7} {one.test:15} corrected p = {one.p_adjusted:.2g}")

# %%
# The features of each cluster. The clusters were made from them, so the p-values are optimistic.
# Honest ones come from clusters that were found without the view in question.
honest = model.explain(held_out_view=True).markers
for row in honest.top(6):
    print(f"{row['feature']:8} cluster {row['cluster']}  {row['effect']:+.1f} SD  "
          f"corrected p = {row['p_adjusted']:.1g}")  # fmt: skip

# %%
# How many features pass, of the 18 planted ones and of the other 132, once for each cluster.
for words, one in (("optimistic", found.markers), ("honest", honest)):
    planted = np.array([int(name.lstrip("genlipd")) < 9 for name in one.feature])
    passed = one.p_adjusted < 0.05
    print(f"{words:10} planted {np.sum(passed & planted)}, others {np.sum(passed & ~planted)}")

# %%
# The best features, mouse by mouse. ``model.report("report.html", known=known)`` writes a page with
# this figure and many more.
import matplotlib.pyplot as plt

best = list(dict.fromkeys(found.markers.feature[:30]))[:15]
joined = pd.concat(tables.values(), axis=1)[best]
order = np.argsort(model.labels_, kind="stable")
z = ((joined - joined.mean()) / joined.std()).to_numpy()[order].T

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.imshow(z, aspect="auto", cmap="RdBu_r", vmin=-2.5, vmax=2.5)
ax.set_yticks(range(len(best)), best, size=8)
ax.set_xticks(np.cumsum(np.bincount(model.labels_)) - 0.5, [])
ax.set_xlabel("mice, sorted by cluster")
ax.set_title("best features of the clusters", loc="left", size=10)
plt.show()
