"""Public files that are pinned by digest: where they are published, and how a copy is read (L1)."""

import gzip
import zlib
from io import BytesIO
from pathlib import Path

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError, NotReadyError

_MAX_BYTES = 64 * 1024 * 1024


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """A published file."""

    path: str
    """Where it lies below a folder of such files."""
    sha256: Digest
    unpacked_sha256: Digest
    """Of what a packed file holds, for copies that are not packed."""
    size_bytes: int
    unpacked_bytes: int
    repository: str
    revision: str
    """A commit of the repository."""
    place: str
    """Its path in the repository."""
    licence: str

    @property
    def published(self) -> str:
        """The path below a folder of such files, packed or not as it is published."""
        return self.path if self.place.endswith(".gz") else self.path.removesuffix(".gz")

    @property
    def published_bytes(self) -> int:
        """The size, packed or not as it is published."""
        return self.size_bytes if self.published == self.path else self.unpacked_bytes

    @property
    def origin(self) -> str:
        """Where it is published, for a person."""
        return f"{self.place} of {self.repository}@{self.revision[:8]}"


HUMANEVAL = Pinned(
    path="humaneval/HumanEval.jsonl.gz",
    sha256=digest.digest("b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef"),
    unpacked_sha256=digest.digest("1d49078ba3e2b196b9344535bef34a43021f038fad9561d6ee7c53450609a6a2"),
    size_bytes=44_877,
    unpacked_bytes=214_438,
    repository="openai/human-eval",
    revision="6d43fb980f9fee3c892a914eda09951f772ad10d",
    place="data/HumanEval.jsonl.gz",
    licence="MIT",
)
MBPP = Pinned(
    path="mbpp/mbpp.jsonl",
    sha256=digest.digest("ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f"),
    unpacked_sha256=digest.digest("ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f"),
    size_bytes=563_743,
    unpacked_bytes=563_743,
    repository="google-research/google-research",
    revision="f46ca8374b4cddef97ca4208ad986049d74d296a",
    place="mbpp/mbpp.jsonl",
    licence="CC-BY-4.0",
)
MBXP_PYTHON = Pinned(
    path="mbxp/mbpp_release_v1.jsonl.gz",
    sha256=digest.digest("f437778969c656e82c0d6ebe592b8f5325e1e092508713400d211cb9a90765ef"),
    unpacked_sha256=digest.digest("2ea7949f20ed5ecaacf4c9970d29430ec3f13772f4dd379665b1234f14b0ec3e"),
    size_bytes=169_667,
    unpacked_bytes=936_808,
    repository="amazon-science/mxeval",
    revision="e09974f990eeaf0c0e8f2b5eaff4be66effb2c86",
    place="data/mbxp/mbpp_release_v1.jsonl",
    licence="CC-BY-4.0",
)
MBXP_JAVASCRIPT = Pinned(
    path="mbxp/mbjsp_release_v1.2.jsonl.gz",
    sha256=digest.digest("f6b5831f77ba8fbdd28668e44b2107bb4a0c295c887ce81346dbd8aef88247af"),
    unpacked_sha256=digest.digest("9e443a1911bcedd8b5193f43d3217666fbf669cd00d54265941a8eb17e396f5a"),
    size_bytes=186_996,
    unpacked_bytes=1_425_621,
    repository="amazon-science/mxeval",
    revision="e09974f990eeaf0c0e8f2b5eaff4be66effb2c86",
    place="data/mbxp/mbjsp_release_v1.2.jsonl",
    licence="CC-BY-4.0",
)


def read(pinned: Pinned, folder: Path) -> bytes:
    """The content, unpacked, of a copy below `folder`: in its own place there or directly in it, packed or not.

    Raises:
        NotReadyError: there is no copy.
        IntegrityError: the copy is another file than the published one.
    """
    return read_at(pinned, find(pinned, folder))


def read_at(pinned: Pinned, path: Path) -> bytes:
    """The content, unpacked, of the copy at `path`.

    Raises:
        NotReadyError, IntegrityError: as `read`.
    """
    try:
        data = files.read_bounded(path, _MAX_BYTES)
    except FileNotFoundError:
        raise _missing(pinned, path) from None
    return content(pinned, data, str(path))


def content(pinned: Pinned, data: bytes, where: str) -> bytes:
    """The content, unpacked, of a copy that was read or fetched from somewhere.

    Raises:
        IntegrityError: it is another file than the published one.
    """
    found = digest.of_bytes(data)
    if found == pinned.unpacked_sha256:
        return data
    if found == pinned.sha256:
        return _unpacked(data, where)
    raise IntegrityError(
        f"{where} has {len(data)} bytes with digest {found}, published is {pinned.sha256} (unpacked "
        f"{pinned.unpacked_sha256}): get {pinned.origin} again"
    )


def find(pinned: Pinned, folder: Path) -> Path:
    """Where a copy lies below `folder`; nobody has read it yet.

    Raises:
        NotReadyError: there is none.
    """
    own = Path(pinned.path)
    names = (
        own,
        Path(own.name),
        own.with_name(own.name.removesuffix(".gz")),
        Path(own.name.removesuffix(".gz")),
    )
    found = next((folder / name for name in names if (folder / name).exists()), None)
    if found is None:
        raise _missing(pinned, folder / own)
    return found


def _missing(pinned: Pinned, path: Path) -> NotReadyError:
    return NotReadyError(
        f"{path} is not there: `longwatch fetch` gets it, or put {pinned.origin} ({pinned.licence}) there"
    )


def _unpacked(data: bytes, where: str) -> bytes:
    try:
        with gzip.open(BytesIO(data)) as stream:
            unpacked = stream.read(_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise IntegrityError(f"{where} cannot be unpacked: {error}") from error
    if len(unpacked) > _MAX_BYTES:
        raise IntegrityError(f"{where} unpacks to more than {_MAX_BYTES} bytes: it is not the published file")
    return unpacked
