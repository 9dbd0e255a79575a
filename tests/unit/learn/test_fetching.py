"""Public files come whole, checked and from where they are pinned, or not at all."""

import gzip
import threading
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
import tomlkit
from curricula import PUBLIC

from longwatch.kernel.digest import of_bytes
from longwatch.kernel.errors import ConfigError, IntegrityError, NotReadyError, RefusedError, TransientError
from longwatch.learn import fetching as offered
from longwatch.learn.auditing import benchmarks
from longwatch.learn.settings import LearnSettings
from longwatch.learn.sources import humaneval, licence, pinned
from longwatch.learn.sources.fetching import fetch, is_there
from longwatch.learn.sources.pinned import Pinned

CONTENT = b'{"task_id": 1}\n' * 500
PACKED = gzip.compress(CONTENT, mtime=0)


def pin(place):
    return Pinned(
        path="set/tasks.jsonl.gz",
        sha256=of_bytes(PACKED),
        unpacked_sha256=of_bytes(CONTENT),
        size_bytes=len(PACKED),
        unpacked_bytes=len(CONTENT),
        repository="somebody/something",
        revision="0123456789abcdef",
        place=place,
        licence="MIT",
    )


GZ, PLAIN = pin("data/tasks.jsonl.gz"), pin("data/tasks.jsonl")


@pytest.fixture
def server():
    """Serves what stands in `files`, by path, and cuts what stands in `cut`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path not in files:
                self.send_error(404)
                return
            data = files[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if self.path in cut else data)

        def log_message(self, *_):
            """Say nothing."""

    files, cut, asked = {}, set(), []
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    serving.host, serving.files, serving.cut, serving.asked = (
        f"http://127.0.0.1:{serving.server_port}",
        files,
        cut,
        asked,
    )
    yield serving
    serving.shutdown()
    serving.server_close()


def path_of(wanted):
    return f"/{wanted.repository}/{wanted.revision}/{wanted.place}"


def left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize(
    ("wanted", "data", "name"), [(GZ, PACKED, "tasks.jsonl.gz"), (PLAIN, CONTENT, "tasks.jsonl")]
)
def test_a_file_comes_once_from_its_pinned_place(tmp_path, server, wanted, data, name):
    server.files[path_of(wanted)] = data
    path = fetch(wanted, tmp_path, host=server.host)
    assert (path.name, path.read_bytes()) == (name, data)
    assert pinned.read(wanted, tmp_path) == CONTENT
    assert fetch(wanted, tmp_path, host=server.host) == path
    assert server.asked == [path_of(wanted)]


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize("wrong", [CONTENT[:-1] + b"x", CONTENT + b"x", b"x" * (8 * len(CONTENT))])
def test_another_file_in_its_place_is_refused_and_nothing_of_it_is_kept(tmp_path, server, wrong):
    server.files[path_of(PLAIN)] = wrong
    with pytest.raises(IntegrityError, match="published is"):
        fetch(PLAIN, tmp_path, host=server.host)
    assert left(tmp_path) == ["fetch.lock"]


@pytest.mark.guarantee("L1")
def test_a_download_that_is_cut_leaves_nothing_and_the_next_one_succeeds(tmp_path, server):
    server.files[path_of(PLAIN)] = CONTENT
    server.cut.add(path_of(PLAIN))
    with pytest.raises(TransientError):
        fetch(PLAIN, tmp_path, host=server.host)
    assert left(tmp_path) == ["fetch.lock"]
    server.cut.clear()
    assert fetch(PLAIN, tmp_path, host=server.host).read_bytes() == CONTENT


def test_a_damaged_copy_is_fetched_again(tmp_path, server):
    server.files[path_of(GZ)] = PACKED
    path = fetch(GZ, tmp_path, host=server.host)
    path.write_bytes(PACKED[:-1])
    assert fetch(GZ, tmp_path, host=server.host).read_bytes() == PACKED


@pytest.mark.parametrize("host", ["http://127.0.0.1:1", "http://127.0.0.1:{port}"])
def test_without_a_network_the_message_says_what_to_copy_where(tmp_path, server, host):
    with pytest.raises(TransientError) as caught:
        fetch(GZ, tmp_path, host=host.format(port=server.server_port))
    said = str(caught.value)
    assert str(tmp_path / "set/tasks.jsonl.gz") in said
    assert "data/tasks.jsonl.gz of somebody/something@01234567" in said
    assert "--from" in said
    assert left(tmp_path) == ["fetch.lock"]


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize(("name", "data"), [("tasks.jsonl.gz", PACKED), ("tasks.jsonl", CONTENT)])
def test_a_folder_may_stand_in_for_the_network(tmp_path, name, data):
    source, cache = tmp_path / "stick", tmp_path / "cache"
    source.mkdir()
    with pytest.raises(NotReadyError, match="stick"):
        fetch(GZ, cache, source=source)
    (source / name).write_bytes(data[:-1])
    with pytest.raises(IntegrityError, match="stick"):
        fetch(GZ, cache, source=source)
    assert left(cache) == ["fetch.lock"]
    (source / name).write_bytes(data)
    assert fetch(GZ, cache, source=source).name == name
    assert is_there(GZ, cache)


@pytest.mark.guarantee("L1")
def test_everything_offered_is_pinned_by_commit_and_what_must_not_train_is_for_audits_only():
    pins = [one for offer in offered.OFFERS.values() for one in offer.pins]
    assert len(pins) == 21
    for one in pins:
        assert len(one.revision) == 40
        assert int(one.revision, 16)
        assert one.published_bytes in {one.size_bytes, one.unpacked_bytes}
    curricula = [offer for offer in offered.OFFERS.values() if "curriculum" in offer.lines]
    assert not {one for offer in curricula for one in offer.pins} & set(pinned.MULTIPL_E.values())


@pytest.mark.guarantee("L1")
@pytest.mark.parametrize("name", ["MultiPL-E", "nonsense", ""])
def test_nothing_else_is_offered(tmp_path, name):
    with pytest.raises(ConfigError, match="student, humaneval, multipl-e, mbpp, mbxp"):
        offered.fetch(name, tmp_path)


@pytest.mark.skipif(not PUBLIC.exists(), reason="the public data are not here")
@pytest.mark.guarantee("L1", "L22")
@pytest.mark.parametrize("name", ["humaneval", "multipl-e", "mbpp", "mbxp"])
def test_what_it_says_can_be_put_into_the_configuration_as_it_is(tmp_path, name):
    cache = tmp_path / 'a "cache"'
    assert f"{name} " in offered.listing(cache)
    assert " here" not in offered.listing(cache).replace("not here", "")
    said = offered.fetch(name, cache, source=PUBLIC)
    table = tomlkit.parse(said.split("\n\n", 1)[1]).unwrap()
    settings = msgspec.convert({"kind": "learn", **table}, LearnSettings)
    if name == "humaneval":
        assert len(humaneval.load(tmp_path / settings.audit.humaneval)) == 164
    elif name == "multipl-e":
        assert len(benchmarks.chosen(settings.audit, tmp_path)) == 13
    else:
        assert settings.curriculum.source == name
        assert all(pinned.read(one, cache / "public") for one in offered.OFFERS[name].pins)
    row = next(line for line in offered.listing(cache).splitlines() if line.startswith(name))
    assert row.endswith("  here")
    for line in pinned.read(offered.OFFERS[name].pins[0], cache / "public").splitlines()[:3]:
        with pytest.raises(RefusedError) if name == "multipl-e" else nullcontext():
            licence.check(line, name)
