import functools
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from polyspan.cli.main import main
from polyspan.datasets import download
from polyspan.datasets.registry import find_entry, list_datasets


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """No data sets except those built in; returns the cache folder."""
    monkeypatch.delenv("POLYSPAN_DATA", raising=False)
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path / "cache"


@pytest.fixture
def mirror(empty, tmp_path, monkeypatch, data_dir):
    """A server with the bytes of ngs and of movies617, and with nothing else."""
    for name in ("ngs", "movies617"):
        [file] = find_entry(name).files
        target = tmp_path / "www" / file.repository / file.commit / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((data_dir / file.name).read_bytes())
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "www"))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *args: None)
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        monkeypatch.setenv("POLYSPAN_MIRROR", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield
        server.shutdown()
        thread.join()


def rows(text):
    """Lines of a table by their first word."""
    return {line.split()[0]: line for line in text.splitlines() if line.split()}


def test_list_when_nothing_is_here(empty, capsys):
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    table = rows(out)
    assert set(list_datasets()) <= set(table)
    assert "1797" in table["digits"]
    assert "pixels 64, fourier 40, gradients 32" in table["digits"]
    assert "built in" in table["digits"]
    assert "not here" in table["ngs"]
    assert "polyspan data fetch NAME" in out
    assert not empty.exists()  # looking writes nothing


def test_list_says_where_and_under_which_license(empty, capsys, tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "ngs.mat").touch()
    empty.mkdir()
    (empty / "bbc.mat").touch()
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path / "own"))
    main(["data", "list"])
    table = rows(capsys.readouterr().out)
    assert "POLYSPAN_DATA" in table["ngs"]
    assert " cache " in table["bbc"]
    note = table["yale_mtv"].split()[-1]
    assert table[note] == f"{note} research use only, do not redistribute"


def test_list_fits_80_columns(empty, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    main(["data", "list"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "216, 76, 64, 6, 240, 47" in rows(out)["handwritten"]
    assert "…" not in out


def test_list_of_named_ones_says_all_that_is_known(empty, capsys):
    assert main(["data", "list", "GBM", "ngs"]) == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith("gbm: Glioblastomas (TCGA) by genes and microRNAs")
    assert max(map(len, first.splitlines())) <= 100
    words = " ".join(first.split())
    for said in (
        "views gene 1500, mirna 470 classes none values as published, patients matched by id; ",
        "license package is GPL (>= 2), which need not cover the data; research use",
        "where not here source https://github.com/taoshengxu/CancerSubtypes, commit 36c3baed37",
        "gbm_status.rda data/status.rda",
    ):
        assert said in words
    assert "values   as published\n" in second
    assert main(["data", "list", "bbsport"]) == 2


def test_check_of_a_set_that_is_here_in_part(empty, capsys):
    empty.mkdir()
    (empty / "snare_GxC1.npz").touch()
    main(["data", "list"])
    assert "in part" in rows(capsys.readouterr().out)["snare_cortex"]
    assert main(["data", "check"]) == 1
    assert "snare_GxC1.npz is not the published file: it has 0 bytes" in capsys.readouterr().out


def test_check_of_several_files(empty, capsys, omics_dir, monkeypatch):
    monkeypatch.setenv("POLYSPAN_DATA", str(omics_dir))
    assert main(["data", "check", "gbm"]) == 0
    told = "gbm  ok: POLYSPAN_DATA, 100 samples, 2 views, no classes\n"
    assert capsys.readouterr().out == told
    empty.mkdir()
    for name in ("gbm_GeneExp.rda", "gbm_miRNAExp.rda", "gbm_time.rda", "gbm_status.rda"):
        (empty / name).write_bytes((omics_dir / name).read_bytes())
    with (empty / name).open("ab") as stream:
        stream.write(b"\0")
    monkeypatch.delenv("POLYSPAN_DATA")
    assert main(["data", "check"]) == 1
    assert "gbm_status.rda is not the published file: it has 121 bytes" in capsys.readouterr().out


def test_fetch_then_check(mirror, empty, capsys):
    assert main(["data", "fetch", "NGs", "movies617"]) == 0
    out, err = capsys.readouterr()
    assert out == f"ngs  {empty / 'ngs.mat'}\nmovies617  {empty / 'movies617.mat'}\n"
    assert err == ""
    assert main(["data", "check"]) == 0
    assert capsys.readouterr().out == (
        "digits  ok: built in, 1797 samples, 3 views, 10 classes\n"
        "movies617  ok: cache, 617 samples, 2 views, 17 classes\n"
        "ngs  ok: cache, 500 samples, 3 views, 5 classes\n"
        "wdbc  ok: built in, 569 samples, 3 views, 2 classes\n"
    )


def test_fetch_goes_on_after_a_failure(mirror, empty, capsys):
    assert main(["data", "fetch", "bbc", "ngs", "digits"]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("polyspan: could not download bbc from http://127.0.0.1")
    assert err.endswith("the server answered 404\n")
    assert err.count("\n") == 1
    assert "digits  is built in" in out
    assert [path.name for path in empty.iterdir()] == ["ngs.mat"]


def test_fetch_all(mirror, empty, capsys):
    assert main(["data", "fetch", "--all"]) == 1  # the mirror has two of them
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert len(err.splitlines()) == len(list_datasets()) - 4  # two are built in, two came


def test_fetch_force_downloads_again(mirror, empty):
    assert main(["data", "fetch", "ngs"]) == 0
    before = (empty / "ngs.mat").stat().st_ino
    assert main(["data", "fetch", "ngs"]) == 0
    assert (empty / "ngs.mat").stat().st_ino == before
    assert main(["data", "fetch", "ngs", "--force"]) == 0
    assert (empty / "ngs.mat").stat().st_ino != before


@pytest.mark.parametrize("action", ["fetch", "check"])
def test_wrong_names(mirror, empty, capsys, action):
    assert main(["data", action, "ngs", "bbsport"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("polyspan: no data set is called 'bbsport', did you mean 'bbcsport'?")
    assert err.count("\n") == 1
    assert not empty.exists()  # not even the right name was begun


@pytest.mark.parametrize("arguments", [[], ["--all", "ngs"]])
def test_fetch_wants_names_or_all(empty, capsys, arguments):
    with pytest.raises(SystemExit, match="2"):
        main(["data", "fetch", *arguments])
    assert "name the data sets, or use --all" in capsys.readouterr().err


def test_check_finds_wrong_bytes(empty, capsys, data_dir):
    empty.mkdir()
    content = bytearray((data_dir / "ngs.mat").read_bytes())
    content[5] ^= 1  # in the header's text: scipy still reads the file
    (empty / "ngs.mat").write_bytes(content)
    assert main(["data", "check"]) == 1
    assert "ngs  WRONG: " in (out := capsys.readouterr().out)
    assert "its sha256 is not the published one" in out


def test_check_finds_wrong_contents(empty, capsys, data_dir, monkeypatch):
    """Right bytes that do not load as the registry says."""
    monkeypatch.setenv("POLYSPAN_DATA", str(data_dir))
    from polyspan.datasets import load

    monkeypatch.setitem(load.COMPUTED, "ngs", lambda view: [view[:, :9]])
    assert main(["data", "check", "ngs"]) == 1
    assert "does not hold ngs: its views have shapes [(500, 9)]" in capsys.readouterr().out


def test_check_of_a_named_set_that_is_not_here(empty, capsys):
    assert main(["data", "check", "ngs"]) == 1
    assert "ngs  WRONG: ngs is neither in" in capsys.readouterr().out


def test_interrupt_is_one_sentence(empty, capsys, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt("download of ngs from here was interrupted; nothing was kept")

    monkeypatch.setattr(download, "fetch_dataset", interrupt)
    assert main(["data", "fetch", "ngs"]) == 130
    expected = "polyspan: download of ngs from here was interrupted; nothing was kept\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(
    "arguments", [["data"], ["data", "list"], ["data", "fetch"], ["data", "check"]]
)
def test_help_has_examples(arguments, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([*arguments, "--help"])
    assert "examples:\n  polyspan data " in capsys.readouterr().out


@pytest.mark.slow
def test_python_m_polyspan():
    answer = subprocess.run(
        [sys.executable, "-m", "polyspan", "data", "check", "digits"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout.split()[:2]) == (0, ["digits", "ok:"])
