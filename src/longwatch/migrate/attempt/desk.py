"""The desk of one attempt: its clone, its tools, and what the worker is told."""

import os
import secrets
from pathlib import Path

import msgspec

from longwatch.kernel import files
from longwatch.kernel.errors import TransientError
from longwatch.kernel.program import Work
from longwatch.migrate import patterns
from longwatch.migrate.attempt import sources
from longwatch.migrate.attempt.declaration import Known
from longwatch.migrate.attempt.gate import pass_gate
from longwatch.migrate.attempt.prompt import PromptFacts, render, rules_of
from longwatch.migrate.attempt.result import CASES_SCHEMA, RESULT_SCHEMA
from longwatch.migrate.attempt.workers import WORKERS, Mount, WorkerAdapter, WorkRequest
from longwatch.migrate.bench import Bench, bench_of
from longwatch.migrate.checks.protection import protection
from longwatch.migrate.place import INSIDE, Place
from longwatch.migrate.queue import survey
from longwatch.migrate.queue.cards import Card, checks_of
from longwatch.migrate.repository import checkout, fence
from longwatch.migrate.repository.git import Git
from longwatch.migrate.settings import MigrateSettings
from longwatch.migrate.steps import Attempt, MigrateStep


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """Where one attempt works."""

    place: Place
    git: Git
    queue: survey.Read
    card: Card
    step: Attempt
    clone: Path
    kept: Path
    """What stays of the attempt."""
    nonce: str
    bench: Bench
    adapter: WorkerAdapter
    dirty: tuple[str, ...]
    protected: patterns.Patterns

    @property
    def schema(self) -> bytes:
        """Return the JSON Schema of the answer."""
        return CASES_SCHEMA if self.place.profile.has_cases else RESULT_SCHEMA

    @property
    def settings(self) -> MigrateSettings:
        """Return the watch's settings."""
        return self.place.settings


def fence_around(
    work: Work[MigrateStep], place: Place, git: Git, queue: survey.Read, *, landing: bool = False
) -> fence.Fence:
    """Look at what neither a worker nor a generator has any business with outside its clone (specification M16).

    With `landing` other attempts may land meanwhile.
    """
    own = (
        place.watch.config,
        place.prompt,
        place.cards,
        place.watch.keys,
        place.watch.receipts,
        place.evidence,
    )
    named = (*own, *(place.repository / path for path in sorted(queue.everything)))
    with work.span("digest", "protected files"):
        return fence.take(git, place.settings.repository.branch, named, landing=landing)


def prepare(work: Work[MigrateStep], step: Attempt, place: Place) -> Desk:
    """Make the private clone and everything around it, while no other step writes into the person's repository.

    Raises:
        TransientError: card or branch are not what was surveyed, or a preflight command failed.
    """
    with work.span("prepare"), files.locked(place.turn):
        git = Git.open(place.repository)
        queue = survey.read(place)
        card = queue.card(step.job, step.card)
        if card is None or not _stands(git, step, place.settings):
            raise TransientError(
                f"{step.title}: card or branch changed since they were surveyed.", retry_after_s=0.0
            )
        kept = files.make_folder(place.attempt(step.folder))
        pass_gate(work, place, kept)
        files.replace(kept / "baseline", step.baseline.encode())
        clone = place.work / step.folder / "repo"
        checkout.remove(clone.parent, place.work)
        checkout.private_clone(git, step.baseline, clone)
        programs = (*place.settings.worker.argv[:1], *(check.argv[0] for check in place.settings.checks))
        return Desk(
            place=place,
            git=git,
            queue=queue,
            card=card,
            step=step,
            clone=clone,
            kept=kept,
            nonce=secrets.token_hex(16),
            bench=bench_of(place, programs),
            dirty=git.dirty_paths(),
            protected=protection(
                place.settings,
                checks_of(card, place.settings.checks),
                (entry.path for entry in git.ls_tree(step.baseline)),
                queue.files,
            ),
            adapter=WORKERS[place.settings.worker.adapter](),
        )


def _stands(git: Git, step: Attempt, settings: MigrateSettings) -> bool:
    """Return whether the branch is where it was surveyed, or, where others may land, went on from there."""
    head = git.head()
    landing = settings.worker.max_parallel > 1
    return head == step.baseline or (landing and head is not None and git.is_ancestor(step.baseline, head))


def request(desk: Desk) -> WorkRequest:
    """Write the prompt, keep it with the attempt, and return what the adapter is asked for."""
    settings = desk.settings
    protected = (*patterns.PROTECTED, *settings.repository.protected, *desk.place.profile.protected)
    facts = PromptFacts(
        title=desk.card.title,
        card=desk.card.body,
        owned=desk.card.owned,
        checks=checks_of(desk.card, settings.checks),
        nonce=desk.nonce,
        schema=desk.schema.decode(),
        result=desk.adapter.where_to_answer,
        rules=rules_of(desk.card),
        failure=desk.step.failure,
        done=desk.step.done,
        protected=protected,
        **_evidence(desk),
    )
    template = files.read_bounded(desk.place.prompt, 1024 * 1024).decode("utf-8")
    prompt = render(template, facts, file=str(desk.place.prompt), cases=desk.place.profile.has_cases)
    files.replace(desk.kept / "prompt.md", prompt.encode())
    return WorkRequest(
        prompt=prompt,
        nonce=desk.nonce,
        schema=desk.schema,
        job=desk.step.job,
        number=desk.step.number,
        settings=settings.worker,
        environment={name: os.environ[name] for name in settings.worker.environment if name in os.environ},
        search_path=os.environ.get("PATH", ""),
        home=Path.home(),
        base=desk.place.watch.root,
        workdir=desk.bench.inside(desk.clone),
        private=_mount(desk, "private"),
        answer=_answer(desk),
        confined=desk.bench.sandbox.confines,
        budget_usd=settings.budget.usd_per_attempt,
    )


def _evidence(desk: Desk) -> dict[str, str]:
    profile, root = desk.place.profile, desk.place.source_root
    if not profile.has_cases or root is None:
        return {}
    inside = root.resolve()
    if inside.is_relative_to(desk.place.repository):
        inside = desk.bench.inside(desk.clone) / inside.relative_to(desk.place.repository)
    return {"evidence": sources.told(profile, desk.queue.account, desk.card.units, str(inside))}


def known(desk: Desk) -> Known | None:
    """Return what declarations are held against, where the profile asks for any."""
    source = survey.source(desk.place)
    if not desk.place.profile.has_cases or source is None:
        return None
    return Known(
        profile=desk.place.profile,
        account=desk.queue.account,
        checks=checks_of(desk.card, desk.settings.checks),
        units=desk.card.units,
        has_source=lambda path: source.sha256(path) is not None,
    )


def _mount(desk: Desk, name: str) -> Mount:
    """Return a folder of this attempt alone, and where it stands inside."""
    host = files.make_folder(desk.clone.parent / name)
    return host, (INSIDE.parent / name if desk.bench.sandbox.confines else host)


def _answer(desk: Desk) -> Mount:
    host, inside = _mount(desk, "out")
    return host / "result.json", inside / "result.json"
