"""Holds one conversation in the Agent Client Protocol. It runs as the worker, inside the sandbox, on the system's Python.

Therefore: the standard library alone, nothing of ours, and no syntax that an older Python does not know. On standard
input comes the script: which agent, where, with which prompt. On standard output goes a line of JSON for each thing that
happens, `{"kind": ..., "data": ...}`: `init`, `session`, `update`, `request_permission`, and at the end `prompt_result`
or `failed`. An agent that is gone leaves neither.

The protocol is JSON-RPC, a message a line (agentclientprotocol.com, version 1). The agent is offered neither files nor
terminals of ours: it has its own, in the same sandbox.
"""

import json
import os
import subprocess
import sys
from typing import Any

VERSION = 1
NO_SUCH_METHOD = {"code": -32601, "message": "this client does not offer it"}
ALLOW = ("allow_once", "allow_always")
REJECT = ("reject_once", "reject_always")
Message = dict[str, Any]


class AgentError(Exception):
    """The agent answered with an error."""


class Conversation:
    """One agent, and what it was asked."""

    def __init__(self, script: Message) -> None:
        self.script = script
        self.asked = 0
        self.agent = subprocess.Popen(
            script["argv"], cwd=script["cwd"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def hold(self) -> None:
        """Introduce ourselves, open a session, choose the model, prompt. Without a prompt the introduction is all."""
        report("init", self.ask("initialize", {"protocolVersion": VERSION, "clientCapabilities": {}}))
        if not self.script["prompt"]:
            return
        session = self.ask("session/new", {"cwd": self.script["cwd"], "mcpServers": []})
        report("session", session)
        if self.script["model"]:
            self.ask("session/set_config_option", choice(session, self.script["model"]))
        words = [{"type": "text", "text": self.script["prompt"]}]
        turn = {"sessionId": session["sessionId"], "prompt": words}
        report("prompt_result", self.ask("session/prompt", turn))

    def ask(self, method: str, params: Message) -> Message:
        """Send a request, and serve the agent until it answers."""
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        for line in self.agent.stdout or ():
            message = read(line)
            if "method" in message:
                self.serve(message)
            elif message.get("id") == self.asked and "error" in message:
                raise AgentError(message["error"])
            elif message.get("id") == self.asked:
                return dict(message["result"])
        raise EOFError("the agent ended before it answered " + method)

    def serve(self, message: Message) -> None:
        """Do what the agent asks of its client."""
        method = message["method"]
        if method == "session/update":
            report("update", message["params"]["update"])
        elif method == "session/request_permission":
            self.send({"id": message["id"], "result": {"outcome": self.decide(message["params"])}})
        elif "id" in message:
            self.send({"id": message["id"], "error": NO_SUCH_METHOD})

    def decide(self, request: Message) -> Message:
        """Nobody is there to be asked. In a sandbox everything is allowed that the sandbox allows; without one, files
        outside the repository are not.
        """
        allowed = self.script["confined"] or inside(request["toolCall"], self.script["cwd"])
        report("request_permission", dict(request, allowed=allowed))
        for kind in ALLOW if allowed else REJECT:
            for option in request["options"]:
                if option["kind"] == kind:
                    return {"outcome": "selected", "optionId": option["optionId"]}
        return {"outcome": "cancelled"}

    def send(self, message: Message) -> None:
        """Write one message."""
        pipe = self.agent.stdin
        if pipe is not None:
            pipe.write(json.dumps(dict(message, jsonrpc="2.0")).encode() + b"\n")
            pipe.flush()


def choice(session: Message, model: str) -> Message:
    """Return the request that chooses a model."""
    for option in session.get("configOptions") or ():
        if option.get("category") == "model":
            return {"sessionId": session["sessionId"], "configId": option["id"], "value": model}
    mend = "it offers no choice of model: leave [worker] model empty and choose in its own configuration"
    raise AgentError({"message": mend})


def inside(call: Message, folder: str) -> bool:
    """Whether every file that a tool call names lies in a folder."""
    root = os.path.realpath(folder)
    changes = [part for part in call.get("content") or () if part.get("type") == "diff"]
    named = [os.path.realpath(one["path"]) for one in [*(call.get("locations") or ()), *changes]]
    return all(path == root or path.startswith(root + os.sep) for path in named)


def read(line: bytes) -> Message:
    """Return the message on a line. What is none goes to the log."""
    try:
        message = json.loads(line.decode("utf-8", "replace"))
    except ValueError:
        message = None
    if isinstance(message, dict):
        return message
    print(line.decode("utf-8", "replace"), end="", file=sys.stderr)  # noqa: T201 - the log is its standard error
    return {}


def report(kind: str, data: Any) -> None:
    """Print what happened."""
    print(json.dumps({"kind": kind, "data": data}), flush=True)  # noqa: T201 - a worker's output is its standard output


def main() -> int:
    """Hold the conversation, and end the agent. Returns the exit code."""
    conversation = None
    try:
        conversation = Conversation(json.load(sys.stdin))
        conversation.hold()
    except AgentError as error:
        report("failed", error.args[0])
        return 1
    except (EOFError, OSError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - the log is its standard error
        return 1
    finally:
        if conversation is not None:
            conversation.agent.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
