"""What a worker says, held against what is there; and how much of what is wrong is kept."""

import json

import msgspec
import pytest

from longwatch.kernel.line import Succeeded
from longwatch.migrate.attempt.claims import Claim, Unreadable, claimed
from longwatch.migrate.evidence import succeeded
from longwatch.migrate.patterns import protected_patterns
from longwatch.migrate.repository.git import Change
from longwatch.migrate.repository.harvest import Harvest
from longwatch.migrate.settings import Repository
from longwatch.migrate.steps import Evidence, Refusal, Refused

NONCE = "n" * 32
PROTECTED = protected_patterns(Repository(branch="main"))


def judged(
    *there: str, refused: tuple[str, ...] = (), raw: bytes | Unreadable | None = b"", **said: object
) -> Claim:
    changes = tuple(Change(path=path, kind="A", mode="100644", blob="b" * 40) for path in there)
    answer = {
        "nonce": NONCE,
        "status": "done",
        "summary": "did it",
        "changed": list(there),
        "reason": "",
        **said,
    }
    given = json.dumps(answer).encode() if raw == b"" else raw
    taken = Harvest(tree="t", changes=changes, refused=refused)
    return claimed(given, NONCE, taken, owned=("src/**",), protected=PROTECTED)


def test_a_true_claim_is_kept() -> None:
    claim = judged("src/a.py")
    assert (claim.refused, claim.summary) == ((), "did it")


@pytest.mark.guarantee("M12", "M13", "M18")
@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (judged("src/a.py", changed=["src/b.py"]), "src/a.py: it was changed and not declared"),
        (judged("src/a.py", changed=["src/b.py"]), "src/b.py: it is declared as changed and is as it was"),
        (judged("src/a.py", "b.py"), "b.py lies outside the owned paths"),
        (judged("src/a.py", "src/Makefile"), "src/Makefile is protected"),
        (judged(changed=["src/a.py"]), "src/a.py: it is declared as changed"),
        (judged("src/a.py", nonce="0" * 32), "nonce"),
        (judged("src/a.py", refused=("src/b: a symbolic link",)), "src/b: a symbolic link"),
        (judged("src/a.py", raw=None), "left no result"),
        (judged("src/a.py", raw=Unreadable("result.json is a link")), "result.json is a link"),
        (judged(status="blocked", reason="no access"), "no access"),
    ],
)
def test_everything_that_is_not_so_is_named(claim: Claim, why: str) -> None:
    assert why in "; ".join(claim.refused)


def kept(*reasons: str) -> tuple[str, ...]:
    outcome = succeeded(Refused(kind=Refusal.CLAIM, reasons=reasons))
    assert isinstance(outcome, Succeeded)
    found = msgspec.json.decode(outcome.evidence, type=Evidence)
    assert isinstance(found, Refused)
    return found.reasons


@pytest.mark.guarantee("M27", "K22")
def test_a_worker_cannot_flood_the_record_with_its_faults() -> None:
    assert kept("a", "b") == ("a", "b")
    many = kept(*(f"fault {number}" for number in range(6000)))
    assert many[:2] == ("fault 0", "fault 1")
    assert many[-1] == "and 5950 more"
    assert len(many) < 100
    (long,) = kept("x" * 1_000_000)
    assert len(long) < 5000
