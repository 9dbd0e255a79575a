"""One request to an endpoint, in a thread of its own, so that whoever waits can stop waiting at any moment.

The standard library's client is enough for one POST without streaming: no redirect is followed, no cookie kept, no
compression asked for, and never more is read than an answer may have.
"""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

from longwatch import __version__
from longwatch.kernel.errors import LongwatchError, TransientError
from longwatch.learn.teachers.endpoint import Reply

MAX_BYTES = 4 * 1024**2
"""No answer that can be used is larger."""
_PIECE_BYTES = 64 * 1024


class Call:
    """A POST under way. `done` says when `outcome` is there; `end` gives it up."""

    def __init__(
        self, url: str, body: bytes, *, key: str, timeout_s: float, direct: bool, told: Callable[[], None]
    ) -> None:
        """`direct` goes past every proxy; `told` is called from the thread when it is done."""
        self._request = _request(url, body, key)
        self._timeout_s, self._direct, self._told = timeout_s, direct, told
        self._deadline_s = time.monotonic() + timeout_s
        self._socket: socket.socket | None = None
        self.outcome: Reply | LongwatchError | None = None
        threading.Thread(target=self._run, name="teacher", daemon=True).start()

    @property
    def done(self) -> bool:
        """True if there is an outcome."""
        return self.outcome is not None

    @property
    def overdue(self) -> bool:
        """True if it has had its time: a server that sends a byte now and then holds nobody up."""
        return time.monotonic() > self._deadline_s

    def end(self, why: str) -> None:
        """Give it up; the thread ends by itself when its line is cut."""
        self.outcome = self.outcome or TransientError(why)
        line = self._socket
        if line is not None:
            with contextlib.suppress(OSError):  # it is closed already
                # Not the TLS layer's own shutdown, which the thread may be using.
                socket.socket.shutdown(line, socket.SHUT_RDWR)

    def _run(self) -> None:
        try:
            found: Reply | LongwatchError = self._answer()
        except ssl.SSLCertVerificationError as error:
            found = TransientError(
                f"the teacher's endpoint has no certificate that is trusted here: {error.verify_message}"
            )
        # All errors of sockets, TLS and HTTP, and what a malformed header raises, are among these.
        except (OSError, HTTPException, ValueError) as error:
            found = TransientError(
                f"the teacher's endpoint could not be asked: {type(error).__name__}: {error}"
            )
        self.outcome = self.outcome or found
        self._told()

    def _answer(self) -> Reply:
        answer: HTTPResponse = _opener(self._connected, direct=self._direct).open(
            self._request, timeout=self._timeout_s
        )
        with answer:
            body, problem = _body(answer)
            return Reply(
                status=answer.status,
                body=body,
                problem=problem,
                retry_after=answer.headers.get("Retry-After", ""),
                request=answer.headers.get("x-request-id", ""),
                encoding=answer.headers.get("Content-Encoding", "").strip().lower(),
            )

    def _connected(self, line: socket.socket) -> None:
        self._socket = line
        if self.outcome is not None:
            self.end("")


def _body(answer: HTTPResponse) -> tuple[bytes, str]:
    """Return what was sent, and why it cannot be used: it is more than allowed, or less than announced."""
    found = bytearray()
    while len(found) <= MAX_BYTES and (piece := answer.read(_PIECE_BYTES)):
        found += piece
    if len(found) > MAX_BYTES or (answer.length or 0) > MAX_BYTES:
        return b"", f"more than {MAX_BYTES} bytes"
    if answer.length:
        raise HTTPException(f"the line was cut, {answer.length} bytes before the end")
    return bytes(found), ""


def _request(url: str, body: bytes, key: str) -> Request:
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": f"longwatch/{__version__}",
    }
    request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - http and https only: settings
    if key:
        request.add_unredirected_header("Authorization", f"Bearer {key}")
    return request


Told = Callable[[socket.socket], None]


def _opener(told: Told, *, direct: bool) -> OpenerDirector:
    """What it lacks is on purpose: no redirects, no cookies, no passwords, and no status is an exception."""
    opener = OpenerDirector()
    for handler in (ProxyHandler({} if direct else None), _Http(told), _Https(told)):
        opener.add_handler(handler)
    return opener


class _Plain(HTTPConnection):
    def __init__(self, host: str, *, timeout: float, told: Told) -> None:
        super().__init__(host, timeout=timeout)
        self._told = told

    def connect(self) -> None:
        super().connect()
        self._told(self.sock)


class _Secure(HTTPSConnection):
    def __init__(self, host: str, *, timeout: float, told: Told) -> None:
        super().__init__(host, timeout=timeout, context=ssl.create_default_context())
        self._told = told

    def connect(self) -> None:
        super().connect()
        self._told(self.sock)


class _Http(HTTPHandler):
    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told

    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_Plain, told=self._told), req)


class _Https(HTTPSHandler):
    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_Secure, told=self._told), req)
