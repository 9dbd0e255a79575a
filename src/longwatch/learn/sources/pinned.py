"""Public files that are pinned by digest: where they are published, and how a copy is read (L1)."""

import gzip
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError, NotReadyError
from longwatch.learn.tasks import Language

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


def _mbxp(name: str, sha256: str, unpacked_sha256: str, size_bytes: int, unpacked_bytes: int) -> Pinned:
    return Pinned(
        path=f"mbxp/{name}.jsonl.gz",
        sha256=digest.digest(sha256),
        unpacked_sha256=digest.digest(unpacked_sha256),
        size_bytes=size_bytes,
        unpacked_bytes=unpacked_bytes,
        repository="amazon-science/mxeval",
        revision="e09974f990eeaf0c0e8f2b5eaff4be66effb2c86",
        place=f"data/mbxp/{name}.jsonl",
        licence="CC-BY-4.0",
    )


MBXP_PYTHON = _mbxp(
    "mbpp_release_v1",
    "f437778969c656e82c0d6ebe592b8f5325e1e092508713400d211cb9a90765ef",
    "2ea7949f20ed5ecaacf4c9970d29430ec3f13772f4dd379665b1234f14b0ec3e",
    169_667,
    936_808,
)
MBXP_JAVASCRIPT = _mbxp(
    "mbjsp_release_v1.2",
    "f6b5831f77ba8fbdd28668e44b2107bb4a0c295c887ce81346dbd8aef88247af",
    "9e443a1911bcedd8b5193f43d3217666fbf669cd00d54265941a8eb17e396f5a",
    186_996,
    1_425_621,
)
MBXP_JAVA = _mbxp(
    "mbjp_release_v1.2",
    "00868797238b87d7fc01eb48ef4f6fdc11e9c255e7ff17cab3862ba4f5a6b888",
    "139a0fcdff2f4c6d456c546c82f43a1f389dfe3125f5f2c3f6a12f478483dffd",
    244_485,
    2_420_406,
)
MBXP_CPP = _mbxp(
    "mbcpp_release_v1.2",
    "9dd0b2cdcc65684f6ce71a02629ff040fbf9270e542685d363489a93f43f3cf0",
    "34a842515927e230eb2bd6e409a44c80a852b0afcbe1172786bd08cfef8b85b0",
    148_845,
    1_304_509,
)
MBXP_RUBY = _mbxp(
    "mbrbp_release_v1.2",
    "c75b032c20ea0c95c039a0eb2d64f1bd9c0eb741ae1e4ce2fb63a326344501ab",
    "fe8c043b7d56f5d122c6aaf24e1dcb78816175a0687a73c03873043a6349b85d",
    160_423,
    1_140_233,
)
MBXP_PHP = _mbxp(
    "mbphp_release_v1.2",
    "53a733bf4fc7efd67d976840692560b0e2ee2464674378c7f2cdf4fe7f5c6f26",
    "aec706039e49bc1bd1c9aaf4cf4815a34777b8387bdc59c1b274312071f3a605",
    186_218,
    1_413_807,
)


def _multipl_e(short: str, sha256: str, size_bytes: int) -> Pinned:
    """A file of prompts as its authors generated them last; they took the files away later, but not their history."""
    return Pinned(
        path=f"multipl-e/humaneval-{short}-reworded.jsonl",
        sha256=digest.digest(sha256),
        unpacked_sha256=digest.digest(sha256),
        size_bytes=size_bytes,
        unpacked_bytes=size_bytes,
        repository="nuprl/MultiPL-E",
        revision="cf9db336f37d5ddcb50f6dbd97c67e5678ecfa96",
        place=f"prompts/humaneval-{short}-reworded.jsonl",
        licence="BSD-3-Clause, and never as training data",
    )


MULTIPL_E: Mapping[Language, Pinned] = {
    Language.JAVASCRIPT: _multipl_e(
        "js", "47536b7f7a0221586cdecc16c900ff8e7ba7dd60cc4bab3bddbbc4e866e0cef8", 206_768
    ),
    Language.TYPESCRIPT: _multipl_e(
        "ts", "dac2c1577ad99503d0c2e1d91ffcc386711ade271462934b604f08b01f7ad0fa", 210_582
    ),
    Language.JAVA: _multipl_e(
        "java", "a38a4fab2136b0b7d03236f2c423d2182b2d4a182edd0fa9639305c3afb733a5", 313_108
    ),
    Language.CPP: _multipl_e(
        "cpp", "4910aa71c605754136ec9c95efcf458704967d21b3d09ed2a141eaca5a1903a2", 264_079
    ),
    Language.GO: _multipl_e(
        "go", "41f2ce7f82f1a2e5a2b1753cd1a18e26cf216c6c45423f5da3e3351a1894e3f4", 278_401
    ),
    Language.RUST: _multipl_e(
        "rs", "3e528744b7b6dcbc8054b489f3928b88901386911ba9bcf908b4f2b53c5bcc87", 211_787
    ),
    Language.RUBY: _multipl_e(
        "rb", "20dbc5f06d5b422a44a7ef590d6c37304e31ab3d351414dbeaa8663af9aae475", 213_054
    ),
    Language.PHP: _multipl_e(
        "php", "588a969eb171a380c4ef4e2dcf461fc2617648bc85c25b2ff497b341c5cc6d86", 252_748
    ),
    Language.PERL: _multipl_e(
        "pl", "faded23384d5494c72221a1220d5a955f1e39136564fe08f1e2c98d3926f8e18", 274_638
    ),
    Language.LUA: _multipl_e(
        "lua", "0b0e7af680169025594aeed41c6d9bb24237a1b23257329cb4b36890c23633a5", 206_945
    ),
    Language.BASH: _multipl_e(
        "sh", "f4a6fc2f6ecf8489bab32584aeeb8a05158bddd51518929fc7fe0010a95210a0", 194_488
    ),
    Language.R: _multipl_e("r", "ae66d068faff39358e6f0825c59e86285bc458037b805f9673222ad21a6309cf", 210_657),
    # In the authors' own file the function's head stands in a comment.
    Language.CSHARP: Pinned(
        path="multipl-e/humaneval-cs.jsonl",
        sha256=digest.digest("1c3fe18be10addc2d0b96311f4db192ae3232e08628d17768d889d6ab87be224"),
        unpacked_sha256=digest.digest("1c3fe18be10addc2d0b96311f4db192ae3232e08628d17768d889d6ab87be224"),
        size_bytes=452_021,
        unpacked_bytes=452_021,
        repository="deepseek-ai/DeepSeek-Coder",
        revision="0e3ea036809378139b453232558cc1f28cdaa326",
        place="Evaluation/HumanEval/data/humaneval-cs.jsonl",
        licence="BSD-3-Clause, and never as training data",
    ),
}
"""HumanEval in other languages (MultiPL-E): for audits only."""


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
