import base64
import json
import os
import stat
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from longwatch.kernel import signing
from longwatch.kernel.errors import IntegrityError, LongwatchError, RefusedError
from longwatch.kernel.signing import EnvelopeError, ForeignKeyError, SignatureError, SigningKey, load_public

PAYLOAD = b'{"a":1}'


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.create(tmp_path / "key")


def changed(data: bytes, **parts: object) -> bytes:
    return json.dumps(json.loads(data) | parts, separators=(",", ":")).encode()


@pytest.mark.guarantee("K31")
def test_the_private_key_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        SigningKey.create(tmp_path / "key")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "key" / signing.PRIVATE_NAME).stat().st_mode) == 0o600
    assert b"PRIVATE" not in (tmp_path / "key" / signing.PUBLIC_NAME).read_bytes()


def test_a_loaded_key_signs_like_the_created_one(tmp_path: Path, key: SigningKey) -> None:
    loaded = SigningKey.load(tmp_path / "key")
    assert loaded.public == key.public == load_public(tmp_path / "key")
    assert loaded.seal(PAYLOAD) == key.seal(PAYLOAD)


@pytest.mark.guarantee("K31")
def test_a_key_is_never_overwritten(tmp_path: Path, key: SigningKey) -> None:
    with pytest.raises(RefusedError, match="exists"):
        SigningKey.create(tmp_path / "key")
    assert SigningKey.load(tmp_path / "key").public == key.public


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
@pytest.mark.guarantee("K31")
def test_a_key_that_others_can_touch_is_refused(tmp_path: Path, key: SigningKey, mode: int) -> None:
    (tmp_path / "key" / signing.PRIVATE_NAME).chmod(mode)
    with pytest.raises(LongwatchError, match="chmod 600"):
        SigningKey.load(tmp_path / "key")


def test_a_crash_before_the_public_key_was_written_is_mended(tmp_path: Path, key: SigningKey) -> None:
    (tmp_path / "key" / signing.PUBLIC_NAME).unlink()
    with pytest.raises(LongwatchError, match="missing"):
        load_public(tmp_path / "key")
    SigningKey.load(tmp_path / "key")
    assert load_public(tmp_path / "key") == key.public


@pytest.mark.guarantee("K31")
def test_a_swapped_public_key_is_noticed(tmp_path: Path, key: SigningKey) -> None:
    SigningKey.create(tmp_path / "other")
    swapped = (tmp_path / "other" / signing.PUBLIC_NAME).read_bytes()
    (tmp_path / "key" / signing.PUBLIC_NAME).write_bytes(swapped)
    with pytest.raises(IntegrityError, match="does not belong"):
        SigningKey.load(tmp_path / "key")


@pytest.mark.parametrize(
    "parts", [{"keyid": "0" * 64}, {"public": "0" * 62}, {"public": "xy"}, {"public": 1}, {"x": 1}]
)
def test_a_damaged_public_key_is_named(tmp_path: Path, key: SigningKey, parts: dict[str, object]) -> None:
    path = tmp_path / "key" / signing.PUBLIC_NAME
    path.write_bytes(changed(path.read_bytes(), **parts))
    with pytest.raises(IntegrityError, match=signing.PUBLIC_NAME):
        load_public(tmp_path / "key")


def test_what_is_no_ed25519_key_is_named(tmp_path: Path, key: SigningKey) -> None:
    path = tmp_path / "key" / signing.PRIVATE_NAME
    other = ec.generate_private_key(ec.SECP256R1())
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for data, word in ((b"", "no private key"), (b"x" * 100, "no private key"), (pem, "no ed25519 key")):
        path.write_bytes(data)
        with pytest.raises(LongwatchError, match=word):
            SigningKey.load(tmp_path / "key")
    path.unlink()
    with pytest.raises(LongwatchError, match="missing"):
        SigningKey.load(tmp_path / "key")


@pytest.mark.guarantee("K31")
def test_the_envelope_is_dsse_that_the_library_verifies(key: SigningKey) -> None:
    sealed = json.loads(key.seal(PAYLOAD))
    assert sealed["payloadType"] == "application/vnd.in-toto+json"
    assert base64.b64decode(sealed["payload"]) == PAYLOAD
    public = SSlibKey(key.public.keyid, "ed25519", "ed25519", {"public": key.public.public})
    assert Envelope.from_dict(sealed).verify([public], 1)


@pytest.mark.guarantee("K31")
def test_what_was_sealed_can_be_opened(key: SigningKey) -> None:
    assert signing.open_envelope(key.seal(PAYLOAD), frozenset({key.public})) == PAYLOAD


@pytest.mark.guarantee("K32")
def test_another_key_is_not_trusted_and_cannot_borrow_a_name(tmp_path: Path, key: SigningKey) -> None:
    other = SigningKey.create(tmp_path / "other")
    sealed = other.seal(PAYLOAD)
    with pytest.raises(ForeignKeyError):
        signing.open_envelope(sealed, frozenset({key.public}))
    with pytest.raises(ForeignKeyError):
        signing.open_envelope(sealed, frozenset())
    signature = json.loads(sealed)["signatures"][0] | {"keyid": key.public.keyid}
    with pytest.raises(SignatureError):
        signing.open_envelope(changed(sealed, signatures=[signature]), frozenset({key.public}))


@pytest.mark.guarantee("K32")
def test_envelopes_of_another_form_are_refused(key: SigningKey) -> None:
    sealed = key.seal(PAYLOAD)
    signature = json.loads(sealed)["signatures"][0]
    for data in (
        b"",
        b"null",
        b"[" * 100_000,
        b"\xff" + sealed,
        sealed + b" ",
        sealed.replace(b":", b": ", 1),
        sealed[:-1] + b',"x":1}',
        sealed.replace(b'{"payload":', b'{"payload":"","payload":', 1),
        changed(sealed, signatures=[]),
        changed(sealed, signatures=[signature, signature]),
        changed(sealed, signatures=[signature | {"extra": 1}]),
        changed(sealed, payloadType="text/plain"),
        changed(sealed, payload="!!!!"),
        changed(sealed, payload=1),
        changed(sealed, signatures="x"),
    ):
        with pytest.raises(EnvelopeError):
            signing.open_envelope(data, frozenset({key.public}))


@pytest.mark.parametrize(
    "sig", ["", "AA==", base64.b64encode(bytes(64)).decode(), base64.b64encode(bytes(4096)).decode()]
)
@pytest.mark.guarantee("K32")
def test_signatures_of_any_length_get_an_answer(key: SigningKey, sig: str) -> None:
    signature = {"keyid": key.public.keyid, "sig": sig}
    with pytest.raises(SignatureError):
        signing.open_envelope(changed(key.seal(PAYLOAD), signatures=[signature]), frozenset({key.public}))


@pytest.mark.guarantee("K32")
def test_a_payload_cannot_be_put_under_another_signature(key: SigningKey) -> None:
    other = msgspec.json.decode(key.seal(b'{"b":2}'))["payload"]
    with pytest.raises(SignatureError):
        signing.open_envelope(changed(key.seal(PAYLOAD), payload=other), frozenset({key.public}))
