"""Records of graded answers for tests of the statistics, by how many were gained, lost and kept."""

from longwatch.learn.acceptance import Pair
from longwatch.learn.tasks import Verdict

PASSED = {True: Verdict.PASS, False: Verdict.FAIL, None: Verdict.INFRA}


def pair(number, champion, challenger, *, problem=None, language="python", family="lists"):
    return Pair(
        task=f"{number}-{language}",
        problem=problem or f"p{number}",
        language=language,
        family=family,
        champion=PASSED[champion],
        challenger=PASSED[challenger],
    )


def record(gained, lost, passed, failed=0, **where):
    """That many problems gained, lost, passed by both and failed by both, spread evenly over each other."""
    kinds = {(False, True): gained, (True, False): lost, (True, True): passed, (False, False): failed}
    places = sorted(
        ((place + 0.5) / count, kind) for kind, count in kinds.items() if count for place in range(count)
    )
    return tuple(pair(number, *kind, **where) for number, (_, kind) in enumerate(places))
