"""A round's numbers, and the sentence that a person reads of it. Pure."""

from collections.abc import Sequence

from longwatch.learn.acceptance import Pair
from longwatch.learn.experiment.collecting import Collected
from longwatch.learn.experiment.evaluating import Marks
from longwatch.learn.experiment.examples import Author, Example
from longwatch.learn.steps import RoundResult
from longwatch.learn.tasks import Verdict
from longwatch.learn.training.results import Trained


def numbers(  # noqa: PLR0917 - what each stage of a round left, in their order
    number: int,
    found: Collected,
    taught: Sequence[Example],
    replayed: int,
    fitted: Trained,
    pairs: Sequence[Pair],
    marks: Marks,
) -> RoundResult:
    """Return the numbers of a round that was trained and evaluated."""
    return RoundResult(
        round=number,
        collected=found.asked,
        passed=found.passed,
        examples=len(taught),
        own=sum(example.author is Author.STUDENT for example in taught),
        replayed=replayed,
        steps=fitted.steps,
        loss_first=fitted.losses[0],
        loss_last=fitted.losses[-1],
        dev_passed=sum(pair.challenger is Verdict.PASS for pair in pairs),
        dev_asked=len(pairs),
        dev_total=marks.total,
        adapter=fitted.adapter,
    )


def sentence(result: RoundResult, marks: Marks) -> str:
    """Return what a person reads of a round."""
    return (
        f"Round {result.round}: {result.passed} of {result.collected} answers verified, {result.examples} examples "
        f"({result.own} its own, {result.replayed} replayed besides), loss {result.loss_first:.2f} -> "
        f"{result.loss_last:.2f}, {_dev(result, marks)}."
    )


def _dev(result: RoundResult, marks: Marks) -> str:
    if result.dev_asked < result.dev_total:
        return (
            f"dev {result.dev_passed} of the first {result.dev_asked}: with the other "
            f"{result.dev_total - result.dev_asked} it could not be nominated any more"
        )
    return f"dev {marks.champion} -> {result.dev_passed} of {result.dev_total} (base {marks.base})"
