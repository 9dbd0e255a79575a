"""A scripted model server on loopback: what the servers of both providers share."""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

Step = Mapping[str, object]
Answer = Sequence[Step]
"""What the model says in one response: words and tool calls."""
Failures = Mapping[str, tuple[int, object, Mapping[str, str]]]
"""Status, body and headers by the mode's name."""


def calls(answer: Answer) -> int:
    return sum("words" not in step for step in answer)


def answer_for(script: Sequence[Answer], results: int) -> Answer:
    """Stateless, so that a client's retries change nothing: the number of tool results decides."""
    seen = 0
    for answer in script[:-1]:
        if seen + calls(answer) > results or calls(answer) == 0:
            return answer
        seen += calls(answer)
    return script[-1]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "ModelServer"

    @staticmethod
    def failures() -> Failures:
        """What it answers in the mode of that name."""
        return {}

    def log_message(self, *arguments: object) -> None:
        """Quiet."""

    def do_HEAD(self) -> None:
        self.reply(200, {})

    def do_GET(self) -> None:
        self.reply(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.bodies.append(body)
        mode = self.server.mode
        if failure := self.failures().get(mode):
            self.reply(*failure)
        elif mode == "hang":
            self.hang()
        else:
            self.respond(json.loads(body), len(self.server.bodies))

    def respond(self, request: dict[str, object], number: int) -> None:
        raise NotImplementedError

    def reply(self, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def stream(self, events: Iterator[tuple[str, dict[str, object]]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for kind, event in events:
            self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **event})}\n\n".encode())
            self.wfile.flush()

    def hang(self) -> None:
        self.server.closing.wait()
        self.close_connection = True


def reading(handler: type[Handler], script: Sequence[Answer]) -> type[Handler]:
    """A model that reads its prompt: where the script says @NONCE@, it answers with the nonce that it was told."""

    class Reading(handler):
        def respond(self, request: dict[str, object], number: int) -> None:
            said = re.search(r"`nonce` is `([0-9a-f]{32})`", json.dumps(request))
            if said:
                self.server.script = json.loads(json.dumps(script).replace("@NONCE@", said[1]))
            super().respond(request, number)

    return Reading


class ModelServer(ThreadingHTTPServer):
    """Serves a script in a mode until its `with` block ends. It listens on a free port of 127.0.0.1."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, handler: type[Handler], script: Sequence[Answer], mode: str) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.script, self.mode = script, mode
        self.bodies: list[bytes] = []
        self.closing = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was ended in the middle of an answer is what these tests are about."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self.shutdown()
        self._thread.join()
        self.server_close()
