"""Gets a pinned public file: from where it is published, or from a folder of a person who has no network (L1).

It is checked by size and digest before anything of it is written.
"""

from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from longwatch.kernel import digest, files
from longwatch.kernel.errors import IntegrityError, NotReadyError, TransientError
from longwatch.learn.sources import pinned
from longwatch.learn.sources.pinned import Pinned
from longwatch.learn.student.cache import alone

HOST = "https://raw.githubusercontent.com"
_TIMEOUT_S = 60.0


def fetch(wanted: Pinned, folder: Path, *, source: Path | None = None, host: str = HOST) -> Path:
    """Return the copy of a file below `folder`, fetched first if a whole one is not there. A second caller waits.

    With `source`, a folder of such files, nothing is downloaded.

    Raises:
        TransientError: it could not be fetched; the message says what to do without a network.
        NotReadyError: `source` does not have it, or the disk is full.
        IntegrityError: what is offered is not what was published.
    """
    with alone(folder, "fetch"):
        if not is_there(wanted, folder):
            data = _copied(wanted, source) if source else _downloaded(wanted, folder, host)
            packed = digest.of_bytes(data) == wanted.sha256
            target = folder / (wanted.path if packed else wanted.path.removesuffix(".gz"))
            files.make_folder(target.parent)
            files.replace(target, data, 0o644)
    return pinned.find(wanted, folder)


def is_there(wanted: Pinned, folder: Path) -> bool:
    """True if a whole copy lies below `folder`; a damaged one there is removed."""
    try:
        pinned.read(wanted, folder)
    except NotReadyError:
        return False
    except IntegrityError:
        files.remove_recorded(pinned.find(wanted, folder), folder)
        return is_there(wanted, folder)
    return True


def _copied(wanted: Pinned, source: Path) -> bytes:
    path = pinned.find(wanted, source)
    pinned.read_at(wanted, path)
    return path.read_bytes()


def _downloaded(wanted: Pinned, folder: Path, host: str) -> bytes:
    url = f"{host}/{wanted.repository}/{wanted.revision}/{wanted.place}"
    try:
        with urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - a pinned place; its digest decides
            data: bytes = answer.read(wanted.published_bytes + 1)
    except (OSError, HTTPException) as error:  # all of urllib's errors are one of these
        raise TransientError(
            f"{url} could not be fetched: {error}. Without a network, copy {wanted.origin} "
            f"to {folder / wanted.published}, or name a folder that has it with --from"
        ) from error
    if len(data) < wanted.published_bytes:
        raise TransientError(
            f"{url} was cut after {len(data)} of {wanted.published_bytes} bytes; nothing was kept: fetch it again"
        )
    pinned.content(wanted, data, url)
    return data
