"""An OpenAI-compatible endpoint on loopback: it teaches, and it fails, stalls and answers nonsense on demand."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.model_server import Handler, ModelServer

USAGE = {"prompt_tokens": 10, "completion_tokens": 20}
KEY = "loopback-key-0123456789"


def completion(text, *, usage=USAGE, **more):
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "chat-7", "model": "large-1", "choices": [choice], "usage": usage, **more}


class Chat(Handler):
    """`server.behave` is called with this handler and the decoded request; by default it answers with `server.script`."""

    def do_POST(self) -> None:  # noqa: N802 - the name that the library calls
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.bodies.append(body)
        self.server.seen.append((self.path, dict(self.headers)))
        self.server.behave(self, json.loads(body))

    def raw(self, body: bytes, *, status: int = 200, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def answering(text: str | Callable[[str], str], **more: object) -> Callable[[Chat, dict], None]:
    def behave(handler: Chat, asked: dict) -> None:
        prompt = asked["messages"][0]["content"]
        handler.reply(200, completion(text(prompt) if callable(text) else text, **more))

    return behave


def refusing(status: int, said: str = "no", **headers: str) -> Callable[[Chat, dict], None]:
    def behave(handler: Chat, asked: dict) -> None:
        handler.reply(
            status, {"error": {"message": said}}, {k.replace("_", "-"): v for k, v in headers.items()}
        )

    return behave


def stalling(handler: Chat, asked: dict) -> None:
    handler.hang()


def stalling_in_the_body(handler: Chat, asked: dict) -> None:
    handler.raw(b'{"choices": [', length=1000)
    handler.hang()


def dripping(handler: Chat, asked: dict) -> None:
    """A byte now and then: no single read ever waits for long."""
    handler.raw(b"", length=10**6)
    while not handler.server.closing.wait(0.05):
        handler.wfile.write(b" ")


def cut(handler: Chat, asked: dict) -> None:
    whole = json.dumps(completion("```python\ndef f(x): return x\n```")).encode()
    handler.raw(whole[:-40], length=len(whole))
    handler.close_connection = True


def gigabyte(handler: Chat, asked: dict) -> None:
    handler.send_response(200)
    handler.send_header("connection", "close")
    handler.end_headers()
    handler.close_connection = True
    for _ in range(1024):
        if handler.server.closing.is_set():
            return
        handler.wfile.write(b" " * 1024 * 1024)
        handler.server.sent_bytes += 1024 * 1024


class ChatServer(ModelServer):
    def __init__(self, behave: Callable[[Chat, dict], None]) -> None:
        super().__init__(Chat, (), "")
        self.behave = behave
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.sent_bytes = 0

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"


def holds(folder: Path, secret: str) -> list[Path]:
    """The files below a folder that hold this text."""
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def since(began_s: float) -> float:
    return time.monotonic() - began_s
