"""What agents say over the Agent Client Protocol when something is wrong: text alone, in the provider's own words.

Recorded with opencode 1.18.33. Other agents are codex or claude behind an adapter, so their words count here too.
Values only.
"""

from longwatch.kernel.errors import FailureClass
from longwatch.migrate.attempt.workers.claude_failures import CLAUDE_FAILURES
from longwatch.migrate.attempt.workers.codex_failures import CODEX_FAILURES
from longwatch.migrate.attempt.workers.verdict import Rule, Table

_WORDS = {
    FailureClass.QUOTA: r"insufficient_quota|exceeded your current quota|insufficient (?:credits|balance)",
    FailureClass.AUTH: r"x-api-key|api key|unauthori[sz]ed|authentication (?:is )?(?:required|error)|auth_required",
    FailureClass.FAULT: r"model not found|no choice of model",
    FailureClass.TRANSIENT: r"rate limit|too many requests|service unavailable|ECONN|fetch failed|socket",
}


def _rules(kind: FailureClass, words: str) -> tuple[Rule, ...]:
    theirs = (rule for table in (CODEX_FAILURES, CLAUDE_FAILURES) for rule in table.rules)
    return (Rule(kind, words), *(rule for rule in theirs if rule.kind is kind))


ACP_FAILURES = Table(
    program="the agent",
    version="opencode 1.18.33",
    rules=tuple(rule for kind, words in _WORDS.items() for rule in _rules(kind, words)),
    broken_sandbox=rf"{CODEX_FAILURES.broken_sandbox}|{CLAUDE_FAILURES.broken_sandbox}",
)
