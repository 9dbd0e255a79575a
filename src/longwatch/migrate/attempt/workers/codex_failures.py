"""What codex 0.171.0 says when something is wrong. Text is all there is: its events carry no codes. Values only."""

import re

from longwatch.kernel.errors import FailureClass
from longwatch.migrate.attempt.workers.verdict import Rule, Table

CODEX_FAILURES = Table(
    program="codex",
    version="0.171.0",
    rules=(
        Rule(
            FailureClass.QUOTA,
            r"hit your usage limit|usage limit reached|Quota exceeded|quota exceeded|out of credits"
            r"|workspace credit limit|usage not included",
        ),
        Rule(
            FailureClass.AUTH,
            r"status:? 40[13]\b|Missing environment variable|Not logged in|invalid_api_key|refresh token",
        ),
        Rule(
            FailureClass.TRANSIENT,
            r"at capacity|capacity is unavailable|status:? (?:408|409|425|429|5\d\d)\b|stream disconnected"
            r"|waiting for network|Connection failed|error sending request|idle timeout|timed out",
        ),
    ),
    broken_sandbox=r"codex-linux-sandbox|Refusing to create helper binaries|bwrap: ",
)

REFUSALS = re.compile(
    r"status:? [45]\d\d\b|at capacity|waiting for network|usage limit|quota exceeded|Missing environment",
    re.IGNORECASE,
)
"""What it says of a request that was refused, or that reached nobody: no answer began, so nothing was used."""
