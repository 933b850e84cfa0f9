"""Downloads from a real server on this machine: good, wrong, cut off, absent, interrupted."""

import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pooch
import pytest

from polyspan.datasets import download, fetch_dataset, load_dataset
from polyspan.datasets.registry import find_entry


class Server(ThreadingHTTPServer):
    """Answers every request with the next of its behaviors; the last one stays."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviors = ["good"]
        self.requests = []
        self.content = b""
        self.others = {}  # contents by path

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        behaviors = self.server.behaviors
        behavior = behaviors.pop(0) if len(behaviors) > 1 else behaviors[0]
        content = self.server.others.get(self.path, self.server.content)
        if isinstance(behavior, int):
            self.send_error(behavior)
            return
        if behavior in ("flood", "drip"):
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                for _ in range(400):
                    self.wfile.write(content if behavior == "flood" else b"x")
                    self.wfile.flush()
                    time.sleep(0.01 if behavior == "drip" else 0)
            return
        if behavior == "wrong":
            content = content[:-1] + bytes([content[-1] ^ 1])
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if behavior == "cut" else content)
        self.close_connection = True

    def log_message(self, *args):
        pass


@pytest.fixture
def server(data_dir, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as server:
        server.content = (data_dir / "ngs.mat").read_bytes()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch, server):
    """An empty cache and no other place to look in; nothing waits."""
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path / "deep" / "cache"))
    monkeypatch.delenv("POLYSPAN_DATA", raising=False)
    monkeypatch.setattr(download, "PAUSE", 0.0)
    return tmp_path / "deep" / "cache"


def contents(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_good_download_can_be_loaded(server, cache):
    [path] = fetch_dataset("NGs", base_url=server.url)
    assert path == cache / "ngs.mat"
    assert path.read_bytes() == server.content
    assert contents(cache) == ["ngs.mat"]
    file = find_entry("ngs").files[0]
    assert server.requests == [f"/{file.repository}/{file.commit}/{file.path}"]
    assert load_dataset("ngs").labels.shape == (500,)


def test_mirror_from_the_environment(server, cache, monkeypatch):
    monkeypatch.setenv("POLYSPAN_MIRROR", server.url)
    assert fetch_dataset("ngs") == [cache / "ngs.mat"]


def test_what_is_here_is_not_downloaded_again_unless_forced(server, cache):
    for _ in range(2):
        fetch_dataset("ngs", base_url=server.url)
    assert len(server.requests) == 1
    fetch_dataset("ngs", base_url=server.url, force=True)
    assert len(server.requests) == 2


def test_a_good_file_of_ones_own_is_enough(server, cache, data_dir, monkeypatch):
    monkeypatch.setenv("POLYSPAN_DATA", str(data_dir))
    assert fetch_dataset("ngs", base_url=server.url) == [data_dir / "ngs.mat"]
    assert server.requests == []


def test_a_damaged_file_in_the_cache_is_replaced(server, cache):
    cache.mkdir(parents=True)
    (cache / "ngs.mat").write_bytes(b"half")
    assert fetch_dataset("ngs", base_url=server.url)[0].read_bytes() == server.content


@pytest.mark.parametrize(
    ("behavior", "message", "requests"),
    [
        ("wrong", "is not the published file: its sha256 is not the published one", 1),
        ("cut", "the connection failed or was lost", 3),
        (404, "the server answered 404", 1),
        (503, "the server answered 503", 3),
    ],
)
def test_failures_name_data_set_and_address_and_leave_nothing(
    server, cache, behavior, message, requests
):
    server.behaviors = [behavior]
    address = find_entry("ngs").files[0].url(server.url)
    with pytest.raises(OSError, match=f"ngs from {address}.*{message}"):
        fetch_dataset("ngs", base_url=server.url)
    assert contents(cache) == []
    assert len(server.requests) == requests


def test_wrong_bytes_known_by_their_git_blob_only(server, cache):
    with pytest.raises(OSError, match=r"yale_mtv from .* git blob hash is not the published one"):
        fetch_dataset("yale_mtv", base_url=server.url)
    assert contents(cache) == []


@pytest.mark.parametrize("trouble", ["cut", 503])
def test_trouble_that_passes(server, cache, trouble):
    server.behaviors = [trouble, trouble, "good"]
    assert fetch_dataset("ngs", base_url=server.url)[0].read_bytes() == server.content
    assert contents(cache) == ["ngs.mat"]


def test_no_server_at_all(server, cache):
    server.server_close()
    with pytest.raises(OSError, match=r"could not download ngs from .*ConnectionError"):
        fetch_dataset("ngs", base_url=server.url)
    assert contents(cache) == []


def test_failed_forced_download_keeps_the_old_file(server, cache):
    fetch_dataset("ngs", base_url=server.url)
    server.behaviors = ["cut"]
    with pytest.raises(OSError, match="was lost"):
        fetch_dataset("ngs", base_url=server.url, force=True)
    assert (cache / "ngs.mat").read_bytes() == server.content
    assert contents(cache) == ["ngs.mat"]


def test_interrupted(server, cache, monkeypatch):
    def half(self, url, output_file, pooch, check_only=False):
        output_file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", half)
    with pytest.raises(KeyboardInterrupt, match=r"ngs from http.* interrupted; nothing was kept"):
        fetch_dataset("ngs", base_url=server.url)
    assert contents(cache) == []


def test_trouble_with_the_disk_is_not_blamed_on_the_network(server, cache, monkeypatch):
    def full(self, url, output_file, pooch, check_only=False):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", full)
    with pytest.raises(OSError, match="No space left on device"):
        fetch_dataset("ngs", base_url=server.url)


def test_progress_bar_reaches_the_end(server, cache, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    fetch_dataset("ngs", base_url=server.url)
    shown = capsys.readouterr().err
    assert "ngs" in shown
    assert "100 of 100, 0 s left: kB" in shown


def test_built_in_needs_no_download(server, cache):
    assert fetch_dataset("digits", base_url=server.url) == []
    assert server.requests == []


# --- Several files ---


@pytest.fixture
def gbm(server, omics_dir):
    """The four files of gbm, on the server."""
    files = find_entry("gbm").files
    for file in files:
        server.others[f"/{file.repository}/{file.commit}/{file.path}"] = (
            omics_dir / file.name
        ).read_bytes()
    return files


def test_all_files_of_a_data_set(server, cache, gbm):
    paths = fetch_dataset("gbm", base_url=server.url)
    assert paths == [cache / file.name for file in gbm]
    assert server.requests == list(server.others)
    assert load_dataset("gbm").views[1].shape == (100, 470)


def test_only_what_is_absent_or_damaged_is_downloaded(server, cache, gbm):
    fetch_dataset("gbm", base_url=server.url)
    server.requests.clear()
    (cache / gbm[1].name).write_bytes(b"half")
    (cache / gbm[3].name).unlink()
    assert fetch_dataset("gbm", base_url=server.url) == [cache / file.name for file in gbm]
    assert len(server.requests) == 2
    assert load_dataset("gbm").views[1].shape == (100, 470)


@pytest.mark.parametrize("behavior", ["wrong", "cut", 404])
def test_one_failure_leaves_none_of_the_files(server, cache, gbm, behavior):
    server.behaviors = ["good", "good", "good", behavior]
    with pytest.raises(OSError, match=r"gbm from http.*/data/status\.rda"):
        fetch_dataset("gbm", base_url=server.url)
    assert contents(cache) == []


def test_one_failure_keeps_the_old_files(server, cache, gbm):
    fetch_dataset("gbm", base_url=server.url)
    server.behaviors = ["good", "good", "good", 404]
    with pytest.raises(OSError, match="404"):
        fetch_dataset("gbm", base_url=server.url, force=True)
    assert contents(cache) == sorted(file.name for file in gbm)
    assert load_dataset("gbm").extra["time"][0] == 358


def test_a_flood_ends_at_the_registered_size(server, cache, monkeypatch):
    written = []
    write = download._Limited.write

    def counted(self, content):
        done = write(self, content)
        written.append(len(content))
        return done

    monkeypatch.setattr(download._Limited, "write", counted)
    server.behaviors = ["flood"]
    size = find_entry("ngs").files[0].bytes
    with pytest.raises(OSError, match=f"ngs from http.* sends more than the {size} bytes"):
        fetch_dataset("ngs", base_url=server.url)
    assert sum(written) <= size
    assert len(server.requests) == 1  # no second attempt
    assert contents(cache) == []


def test_a_server_that_drips_is_left(server, cache, monkeypatch):
    """A byte now and then is no silence, so only a deadline for the whole ends it."""
    monkeypatch.setattr(download, "PATIENCE", 0.3)
    monkeypatch.setattr(download, "SLOWEST", 10**9)
    server.behaviors = ["drip"]
    with pytest.raises(
        OSError, match=r"could not download ngs from http.*: the server is too slow"
    ):
        fetch_dataset("ngs", base_url=server.url)
    assert contents(cache) == []


def test_what_a_killed_download_left_is_removed(server, cache):
    cache.mkdir(parents=True)
    (cache / ".polyspan-0123456789abcdef-ngs.mat").write_bytes(b"half")
    fetch_dataset("ngs", base_url=server.url)
    assert contents(cache) == ["ngs.mat"]
