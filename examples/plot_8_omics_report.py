"""
From omics to a report
======================

Genes and lipids of 40 mice: two genotypes, five diets (nutrimouse). Two lines cluster them and
write a report; the rest asks in Python what the report shows.

The data come with an R package under the GPL, so polyspan does not have them in its box:
``polyspan data fetch nutrimouse`` downloads them once. Where they are not, this script says so and
takes breast tumors instead, which come with scikit-learn; its steps are the same.
"""

# %%
from polyspan.datasets import load_dataset, load_nuclei_views

try:
    data = load_dataset("nutrimouse")
except (FileNotFoundError, ImportError) as error:  # not downloaded, or no reader of R's files
    print(f"Taking other data: {error}")
    data = load_nuclei_views(n_samples=100)
known = {name: values for name, values in data.extra.items() if name != "id"}
print(data)
print("known of the samples:", ", ".join(known))

# %%
# The number of clusters is given; the scaling of every view, and who votes, are found without
# labels. What is known of the samples plays no part.
from polyspan import ConsensusClusterer

model = ConsensusClusterer(n_clusters=data.n_clusters, random_state=0).fit(data)
print(model)
for sentence in model.scaling_:
    print(sentence)

# %%
# The report is one file. Here it is written to a folder that is removed at the end.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

with tempfile.TemporaryDirectory() as folder:
    picture = Path(folder, "clusters.png")
    page = model.report(f"{folder}/report.html", known=known, picture=picture)
    print(f"{page.name}: {page.stat().st_size / 1e3:.0f} kB")
    image = plt.imread(picture)

figure = plt.figure(figsize=(8, 8 * image.shape[0] / image.shape[1]))
figure.add_axes((0, 0, 1, 1)).imshow(image)
figure.axes[0].axis("off")
plt.show()

# %%
# The same in Python: how the clusters relate to what is known, and the features of each cluster.
# ``found.frames()`` has both as tables of pandas.
found = model.explain(known=known)
for one in found.known:
    print(f"{one.column:14} {one.test:22} corrected p = {one.p_adjusted:.2g}, ARI {one.ari:.2f}")
for cluster in sorted(set(model.labels_)):
    for view in data.view_names:
        best = found.markers.top(4, cluster=cluster, view=view)
        names = [f"{row['feature']} ({row['effect']:+.1f} SD)" for row in best]
        print(f"cluster {cluster}, {view}: {', '.join(names)}")

# %%
# The clusters were made from these features. Honest p-values come from clusters that the other
# views find alone: how many of the features still differ, and how much of each cluster is found
# again (1 is all of it)?
honest = model.explain(held_out_view=True).markers
for view in data.view_names:
    own = honest.view == view
    passed = len(set(honest.feature[own & (honest.p_adjusted < 0.05)]))
    again = ", ".join(f"{share:.2f}" for share in honest.found_without[view].values())
    print(f"without {view}: clusters found again {again}; of its {len(set(honest.feature[own]))} "
          f"features {passed} differ")  # fmt: skip
