"""Worker adapters: one small file for each agent program (specification M6)."""

from collections.abc import Callable, Mapping

from longwatch.migrate.attempt.workers.acp import AcpWorker
from longwatch.migrate.attempt.workers.claude import ClaudeWorker
from longwatch.migrate.attempt.workers.codex import CodexWorker
from longwatch.migrate.attempt.workers.command import CommandWorker
from longwatch.migrate.attempt.workers.model import Launch, Mount, WorkerAdapter, WorkRequest
from longwatch.migrate.attempt.workers.replay import ReplayWorker
from longwatch.migrate.attempt.workers.verdict import RunEnd, after_changes

__all__ = ["WORKERS", "Launch", "Mount", "RunEnd", "WorkRequest", "WorkerAdapter", "after_changes"]

WORKERS: Mapping[str, Callable[[], WorkerAdapter]] = {
    "acp": AcpWorker,
    "claude": ClaudeWorker,
    "codex": CodexWorker,
    "command": CommandWorker,
    "replay": ReplayWorker,
}
"""By the name that `[worker] adapter` gives."""
