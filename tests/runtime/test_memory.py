"""How much memory is free: the machine, the limit of the process, its control groups."""

import subprocess
import sys

import pytest

from polyspan.runtime import memory
from polyspan.runtime.memory import available_memory, in_gib, known_memory, memory_words

GIB = 2**30


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def group(root, lines, **folders):
    """A file system with /proc/self/cgroup and these groups."""
    write(root / "proc/self", cgroup=lines)
    for path, files in folders.items():
        write(root / "sys/fs/cgroup" / path, **files)
    return root


def version_2(limit, used, cached=0):
    stat = f"anon 1\nfile 2\ninactive_file {cached}\n"
    return {"memory__max": f"{limit}\n", "memory__current": f"{used}\n", "memory__stat": stat}


def version_1(limit, used, cached=0):
    stat = f"inactive_file 1\ntotal_inactive_file {cached}\n"
    return {
        "memory__limit_in_bytes": f"{limit}\n",
        "memory__usage_in_bytes": f"{used}\n",
        "memory__stat": stat,
    }


def test_own_group_of_version_2_and_those_around_it(tmp_path):
    root = group(
        tmp_path,
        "0::/user.slice/job\n",
        **{"user.slice": version_2(8 * GIB, GIB), "user.slice/job": version_2("max", GIB)},
    )
    assert memory._of_groups(root) == [7 * GIB]
    write(root / "sys/fs/cgroup/user.slice/job", **version_2(4 * GIB, 3 * GIB, GIB // 2))
    assert min(memory._of_groups(root)) == 1.5 * GIB  # the limit less the usage, but for the cache


def test_group_of_version_1_and_its_root_in_a_container(tmp_path):
    lines = "9:name=systemd:/\n4:cpu,memory:/docker/0a1b\n0::/\n"
    root = group(tmp_path, lines, memory=version_1(2 * GIB, GIB, GIB // 4))
    assert memory._of_groups(root) == [1.25 * GIB]
    write(root / "sys/fs/cgroup/memory/docker/0a1b", **version_1(GIB, GIB - 5))
    assert min(memory._of_groups(root)) == 5


def test_no_groups(tmp_path):
    assert memory._of_groups(tmp_path) == []
    assert memory._of_groups(group(tmp_path, "0::/a\n4:cpu:/b\n")) == []


def test_the_least_counts(monkeypatch):
    for name, found in (("_of_machine", [30]), ("_of_process", [20]), ("_of_groups", [40, 10])):
        monkeypatch.setattr(memory, name, lambda found=found: found)
    assert available_memory() == 10
    monkeypatch.setattr(memory, "_of_groups", lambda: [-5])  # more is used than allowed
    assert available_memory() == 0


def test_within_a_block_memory_is_looked_at_once(monkeypatch):
    monkeypatch.setattr(memory, "_of_machine", lambda: [30])
    monkeypatch.setattr(memory, "_of_process", lambda: [])
    monkeypatch.setattr(memory, "_of_groups", lambda: [])
    with known_memory():
        monkeypatch.setattr(memory, "_of_machine", lambda: [20])
        with known_memory():
            assert available_memory() == 30
        assert available_memory() == 30
    assert available_memory() == 20


LIMITED = """
import resource
import numpy as np
from polyspan import GRMSC
from polyspan.runtime.memory import available_memory
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, resource.RLIM_INFINITY))
assert 0 < available_memory() <= 2**29, available_memory()
try:
    GRMSC(2).fit([np.random.default_rng(0).normal(size=(3000, 5))])
except MemoryError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much is mapped")
def test_the_limit_of_the_process_is_seen_before_the_work():
    found = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith(
        "GRMSC on 3000 samples needs about 0.7 GiB for its n x n matrices"
    )


def test_sizes_in_words():
    assert [in_gib(x * GIB) for x in (0, 0.0123, 1.26, 2.4, 1000)] == [
        "0",
        "0.01",
        "1",
        "2",
        "1000",
    ]


def test_words_are_added_only_where_there_are_none():
    with pytest.raises(MemoryError, match=r"^Unable to allocate"), memory_words("GRMSC"):
        raise MemoryError("Unable to allocate 3 GiB")
    with (
        pytest.raises(MemoryError, match=r"^GRMSC ran out of memory: use fewer"),
        memory_words("GRMSC"),
    ):
        raise MemoryError
