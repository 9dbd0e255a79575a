"""No change of a receipt's bytes goes unnoticed, and none makes verification raise."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.receipts import Watch

from longwatch.kernel.digest import Digest
from longwatch.kernel.verification import Answer, verify_receipt


@pytest.fixture(scope="module")
def watch() -> Iterator[Watch]:
    with tempfile.TemporaryDirectory() as folder:
        yield Watch(Path(folder))


def renamed(watch: Watch, forgery: bytes) -> Digest:
    """The forger also gives the file the name that fits."""
    return watch.store.put(forgery)


def answer(watch: Watch, name: Digest) -> Answer:
    return verify_receipt(name, watch.store, watch.world()).answer


@pytest.mark.guarantee("K31", "K32")
@settings(max_examples=400, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255), which=st.booleans())
def test_no_byte_of_a_receipt_can_be_changed(watch: Watch, place: float, mask: int, *, which: bool) -> None:
    data = bytearray(watch.store.read(watch.check if which else watch.decision))
    data[int(place * len(data))] ^= mask
    assert answer(watch, renamed(watch, bytes(data))) in {Answer.SIGNATURE_MISMATCH, Answer.UNTRUSTED_KEY}


@pytest.mark.guarantee("K31", "K32")
@settings(max_examples=200, deadline=None)
@given(start=st.integers(0, 2000), length=st.integers(0, 50), filler=st.binary(max_size=50))
def test_nothing_can_be_put_in_or_cut_out(watch: Watch, start: int, length: int, filler: bytes) -> None:
    good = watch.store.read(watch.decision)
    data = good[:start] + filler + good[start + length :]
    if data != good:
        assert answer(watch, renamed(watch, data)) in {Answer.SIGNATURE_MISMATCH, Answer.UNTRUSTED_KEY}


@pytest.mark.guarantee("K32")
@settings(max_examples=200, deadline=None)
@given(payload=st.binary(max_size=300))
def test_any_signed_bytes_get_an_answer(watch: Watch, payload: bytes) -> None:
    assert answer(watch, watch.store.put(watch.key.seal(payload))) is Answer.EMPTY_EVIDENCE


@pytest.mark.guarantee("K32")
@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_get_an_answer(watch: Watch, data: bytes) -> None:
    assert answer(watch, watch.store.put(data)) is Answer.SIGNATURE_MISMATCH


@pytest.mark.guarantee("K31", "K32")
def test_every_single_bit_counts_under_the_old_name_too(watch: Watch) -> None:
    good = watch.store.read(watch.check)
    path = watch.store.path(watch.check)
    for place in range(0, len(good), 7):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert answer(watch, watch.check) is Answer.SIGNATURE_MISMATCH
    path.write_bytes(good)
    assert answer(watch, watch.check) is Answer.OK
