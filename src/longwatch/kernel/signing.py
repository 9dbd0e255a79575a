"""The watch's key, and the envelope it signs (specification K31): DSSE with ed25519.

The private key lies in the watch's own folder, readable by its owner alone; the sandbox hides that folder from the
worker. Whoever verifies needs only the public key beside it.
"""

import binascii
import stat
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import UnverifiedSignatureError
from securesystemslib.signer import (  # type: ignore[attr-defined]  # it exports them without saying so
    CryptoSigner,
    Signature,
    SSlibKey,
)

from longwatch.kernel import files
from longwatch.kernel.errors import IntegrityError, LongwatchError, RefusedError

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PRIVATE_NAME = "ed25519.pem"
PUBLIC_NAME = "ed25519.pub.json"
_KEY_BYTES = 16_384
_KEY_TYPE = "ed25519"


class EnvelopeError(LongwatchError):
    """Bytes that are no envelope of ours: the form, the payload's type or the number of signatures is wrong."""


class ForeignKeyError(LongwatchError):
    """An envelope names a key that is not trusted."""


class SignatureError(LongwatchError):
    """A signature does not fit the content and the key it names."""


class PublicKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose signatures to believe. `public` is the raw key in hexadecimal."""

    keyid: str
    public: str


class _Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keyid: str
    sig: bytes


class _Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    payload: bytes
    payload_type: str = msgspec.field(name="payloadType")
    signatures: tuple[_Signature, ...]


class SigningKey:
    """The private key of a watch. Get one with `create` or `load`."""

    def __init__(self, signer: CryptoSigner) -> None:
        self._signer = signer

    @classmethod
    def create(cls, folder: Path) -> "SigningKey":
        """Make the key of a new watch in `folder`.

        Raises:
            RefusedError: there is one already.
            NotReadyError, LongwatchError: it cannot be written.
        """
        files.make_folder(folder)
        private = folder / PRIVATE_NAME
        if private.exists():
            raise RefusedError(
                f"{private} exists: a watch keeps its key, or its receipts can no longer be trusted"
            )
        signer = CryptoSigner.generate_ed25519()
        files.create(private, signer.private_bytes, 0o600)
        key = cls(signer)
        _write_public(folder, key.public)
        return key

    @classmethod
    def load(cls, folder: Path) -> "SigningKey":
        """Read the key, and write the public key beside it where a crash came before that.

        Raises:
            LongwatchError: it is missing, readable by others, or no ed25519 key.
            IntegrityError: the public key beside it belongs to another private key.
        """
        private = folder / PRIVATE_NAME
        key = cls(CryptoSigner(_parse_private(_read_private(private), private)))
        if not (folder / PUBLIC_NAME).exists():
            _write_public(folder, key.public)
        if load_public(folder) != key.public:
            raise IntegrityError(
                f"{folder / PUBLIC_NAME} does not belong to {private}: restore the key's folder"
            )
        return key

    @property
    def public(self) -> PublicKey:
        """The half that may be shown."""
        return _public(self._signer.public_key)

    def seal(self, payload: bytes) -> bytes:
        """Return an envelope of in-toto JSON, in the one form that `open_envelope` accepts."""
        signature = Envelope(payload, PAYLOAD_TYPE, {}).sign(self._signer)
        only = _Signature(signature.keyid, bytes.fromhex(signature.signature))
        return msgspec.json.encode(_Envelope(payload=payload, payload_type=PAYLOAD_TYPE, signatures=(only,)))


def load_public(folder: Path) -> PublicKey:
    """Read the public key that lies in a watch's key folder.

    Raises:
        LongwatchError: it is missing.
        IntegrityError: it is damaged.
    """
    path = folder / PUBLIC_NAME
    try:
        key = msgspec.json.decode(files.read_bounded(path, _KEY_BYTES), type=PublicKey)
    except FileNotFoundError:
        raise LongwatchError(
            f"{path} is missing: run `longwatch init`, or restore the key's folder"
        ) from None
    except msgspec.DecodeError as error:
        raise IntegrityError(f"{path} is no public key: {error}. Restore it from the private key.") from error
    if _public(_verifier(key.public, path)) != key:
        raise IntegrityError(
            f"{path}: the key id does not belong to the key. Restore it from the private key."
        )
    return key


def open_envelope(data: bytes, trusted: frozenset[PublicKey]) -> bytes:
    """Return the payload if exactly one trusted key signed it.

    Only the very bytes that `SigningKey.seal` writes are accepted: no white space, no doubled or unknown keys, no other
    spelling of the base64. So the digest of an envelope names one statement and no second spelling of it.

    Raises:
        EnvelopeError, ForeignKeyError, SignatureError: as they say.
    """
    envelope = _parse_envelope(data)
    [signature] = envelope.signatures
    keys = {key.keyid: key for key in trusted}
    if signature.keyid not in keys:
        raise ForeignKeyError(f"it is signed by key {signature.keyid[:64]!r}, which is not trusted")
    signed = Envelope(envelope.payload, envelope.payload_type, {})
    key = SSlibKey(signature.keyid, _KEY_TYPE, _KEY_TYPE, {"public": keys[signature.keyid].public})
    try:
        key.verify_signature(Signature(signature.keyid, signature.sig.hex()), signed.pae())
    except UnverifiedSignatureError as error:
        raise SignatureError(
            f"the signature of key {signature.keyid[:16]} does not fit the content"
        ) from error
    return envelope.payload


def _parse_envelope(data: bytes) -> _Envelope:
    try:
        envelope = msgspec.json.decode(data, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EnvelopeError(f"it is no envelope: {error}") from error
    if len(envelope.signatures) != 1:
        raise EnvelopeError(f"it has {len(envelope.signatures)} signatures, and exactly one is needed")
    if envelope.payload_type != PAYLOAD_TYPE:
        raise EnvelopeError(f"its payload is {envelope.payload_type[:80]!r}, not {PAYLOAD_TYPE}")
    if msgspec.json.encode(envelope) != data:
        raise EnvelopeError("its JSON is not in the one form that is written: something was added or respelt")
    return envelope


def _read_private(path: Path) -> bytes:
    try:
        mode = path.lstat().st_mode
        data = files.read_bounded(path, _KEY_BYTES)
    except FileNotFoundError:
        raise LongwatchError(
            f"{path} is missing: run `longwatch init`, or restore the key's folder"
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise LongwatchError(
            f"{path} can be read or written by others (mode {mode & 0o777:04o}): chmod 600 it"
        )
    return data


def _parse_private(data: bytes, path: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError) as error:
        raise LongwatchError(f"{path} is no private key in PEM: restore it ({error})") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise LongwatchError(f"{path} is no ed25519 key: restore the watch's own key")
    return key


def _write_public(folder: Path, key: PublicKey) -> None:
    files.replace_json(folder / PUBLIC_NAME, key, 0o644)


def _public(key: SSlibKey) -> PublicKey:
    return PublicKey(keyid=key.keyid, public=key.keyval["public"])


def _verifier(public: str, path: Path) -> SSlibKey:
    """Build the library's key from the raw one, which also computes its id."""
    try:
        return SSlibKey.from_crypto(Ed25519PublicKey.from_public_bytes(binascii.unhexlify(public)))
    except (ValueError, binascii.Error) as error:
        raise IntegrityError(f"{path} is no public key: {error}. Restore it from the private key.") from error
