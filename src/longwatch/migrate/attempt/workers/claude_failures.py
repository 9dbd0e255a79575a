"""What Claude Code 2.1.197 says when something is wrong: texts first, then the status of the API. Values only."""

from longwatch.kernel.errors import FailureClass
from longwatch.migrate.attempt.workers.verdict import Rule, Table

CLAUDE_FAILURES = Table(
    program="claude",
    version="2.1.197",
    rules=(
        Rule(
            FailureClass.QUOTA,
            r"credit balance is too low|billing_error|usage limit reached|spend limit reached"
            r"|hit your (?:[\w-]+ ){0,3}limit",
        ),
        Rule(
            FailureClass.AUTH,
            r"authentication_failed|invalid api key|failed to authenticate|oauth token|please run /login",
        ),
        Rule(FailureClass.FAULT, r"model_not_found|error_max_turns|error_max_structured_output_retries"),
        Rule(FailureClass.BUDGET, r"error_max_budget"),
        Rule(
            FailureClass.TRANSIENT,
            r"overloaded|rate_limit|server_error|unable to connect|ConnectionRefused|request timed out",
        ),
    ),
    statuses={
        400: FailureClass.FAULT,
        401: FailureClass.AUTH,
        403: FailureClass.AUTH,
        404: FailureClass.FAULT,
        408: FailureClass.TRANSIENT,
        409: FailureClass.TRANSIENT,
        429: FailureClass.TRANSIENT,
        **dict.fromkeys(range(500, 600), FailureClass.TRANSIENT),
    },
    broken_sandbox=r"bwrap: |sandbox(?:ing)? is not available",
)
