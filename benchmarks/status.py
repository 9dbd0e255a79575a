"""`longwatch status` from a cold start, against a bare interpreter; both take turns."""

from pathlib import Path

from _common import BARE, LONGWATCH, Figure, Result, per_call_s, ran, show, watch_of_a_repository

GOAL_S = 0.150
GOAL_BARE_S = 0.011
RUNS = 25


def measure(folder: Path) -> Result:
    """Measure the whole command, process start included."""
    watch = watch_of_a_repository(folder, "true")
    ours_s, bare_s = per_call_s(
        (lambda: ran((*LONGWATCH, "status"), watch.root), lambda: ran(BARE, watch.root)), rounds=RUNS, block=1
    )
    most = GOAL_S / GOAL_BARE_S
    figure = Figure(
        what="longwatch status, cold",
        ours=ours_s * 1000,
        unit="ms",
        peer="a bare interpreter (python -c pass)",
        theirs=bare_s * 1000,
        goal=f"at most {most:.1f} x (150 ms where the interpreter needs 11 ms)",
        met=ours_s <= most * bare_s,
    )
    return Result((figure,))


if __name__ == "__main__":
    show("A cold status", measure)
