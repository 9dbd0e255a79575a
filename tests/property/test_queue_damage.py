"""However the files of a queue are damaged: they are read, or refused by name, in words that can be shown."""

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import migration

from longwatch.kernel.errors import ConfigError
from longwatch.migrate.checks import cases
from longwatch.migrate.queue import authority
from longwatch.migrate.queue.folder import Folder

PROFILE = migration.profile()
DOCUMENTS = tuple(path for path in migration.documents() if "colors" not in path)
FILES = (*DOCUMENTS, "migration/QUEUE.md", "migration/tasks/shapes.md")
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(st.characters(), max_size=20),
    st.sampled_from(["", "..", "/etc/passwd", ".git/config", "\ud800", "\0", "\x1b[2J", "a" * 5000, "none", "{task}"]),
    st.just([]),
    st.just({}),
    st.just([[]]),
    st.just([{}]),
)  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("queue")
    return migration.lay_out(folder / "port", folder / "source")


def looked_at(root: Path, path: str, raw: bytes) -> str:
    """What is said of a queue in which one file has this content; nothing if it is read."""
    whole = (root / path).read_bytes()
    (root / path).write_bytes(raw)
    try:
        authority.read(PROFILE, Folder(root))
    except ConfigError as error:
        return str(error)
    finally:
        (root / path).write_bytes(whole)
    return ""


def presentable(said: str, path: str) -> None:
    # A unit that vanished from the inventory is missed where it is used.
    assert path in said or ("inventory" in path and "is no unit of the inventory" in said)
    said.encode()
    assert all(character.isprintable() or character == "\n" for character in said), said
    assert len(msgspec.json.encode(said)) < 200_000


@pytest.mark.guarantee("M1", "M13")
@settings(max_examples=150, deadline=None)
@given(
    path=st.sampled_from(FILES),
    cut=st.floats(0, 1),
    length=st.integers(0, 30),
    junk=st.binary(max_size=30),
)
def test_bytes_that_are_cut_out_and_put_in(
    root: Path, path: str, cut: float, length: int, junk: bytes
) -> None:
    whole = (root / path).read_bytes()
    at = int(cut * len(whole))
    said = looked_at(root, path, whole[:at] + junk + whole[at + length :])
    if said:
        presentable(said, path)


@pytest.mark.guarantee("M1", "M13")
@pytest.mark.parametrize("path", DOCUMENTS)
def test_a_document_that_ends_too_early_is_always_refused(root: Path, path: str) -> None:
    whole = (root / path).read_bytes().rstrip()
    for end in range(0, len(whole), 13):
        presentable(looked_at(root, path, whole[:end]), path)


def places(value: object) -> Iterator[tuple[object, object]]:
    """Every container in a document, with each of its keys."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


@pytest.mark.guarantee("M1", "M13")
@settings(max_examples=300, deadline=None)
@given(path=st.sampled_from(DOCUMENTS), seed=st.integers(0, 2**32), how=st.integers(0, 3), junk=JUNK)
def test_values_that_are_exchanged_doubled_removed_or_added(
    root: Path, path: str, seed: int, how: int, junk: object
) -> None:
    value = copy.deepcopy(migration.documents()[path])
    damage(value, random.Random(seed), how, junk)
    said = looked_at(root, path, json.dumps(value).encode())
    if said:
        presentable(said, path)


def damage(value: object, dice: random.Random, how: int, junk: object) -> None:
    there = list(places(value))
    if not there:
        return
    container, key = dice.choice(there)
    if how == 0:
        container[key] = junk
    elif how == 1 and isinstance(container, list):
        container.append(container[key])
    elif how in {1, 2}:
        del container[key]
    elif isinstance(container, dict):
        container[json.dumps(junk)] = junk
    else:
        container.append(junk)


RECEIPT = {
    "nonce": "n",
    "case": "cube-positive",
    "kind": "positive",
    "status": "passed",
    "runtime": "CHROMIUM_WEBENGINE",
    "units": ["cube"],
    "observations": {"before": migration.sha("a"), "after": migration.sha("b")},
    "artifacts": [{"path": name, "sha256": migration.sha(name)} for name in ("a", "b")],
}


@pytest.mark.guarantee("M21")
@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), how=st.integers(0, 3), junk=JUNK, cut=st.integers(0, 900))
def test_a_case_receipt(
    tmp_path_factory: pytest.TempPathFactory, seed: int, how: int, junk: object, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("receipts")
    for name in ("a", "b"):
        (folder / name).write_text(name)
    value = copy.deepcopy(RECEIPT)
    damage(value, random.Random(seed), how, junk)
    (folder / "cube-positive.case.json").write_bytes(json.dumps(value).encode()[: cut or None])
    found = cases.read(folder, "n", PROFILE)
    said = "\n".join((*found.unreadable, *(fault for one in found.seen for fault in one.faults)))
    whole = value == RECEIPT and not cut
    assert whole == any(one.passed for one in found.seen) or not said
    if said:
        presentable(said, "cube-positive.case.json")
