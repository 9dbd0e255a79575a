"""A window of the curriculum: prepared from a source, resumable at any point, bound by one manifest (L2, L3, L4).

In the window's folder stand `order.json` (what was asked), one `rows-*.json` for each stretch of rows that is done,
and at the end a registry for each side and `manifest.json`, the last file written. A killed preparation goes on after
its last stretch, and gives what it would have given.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from longwatch.kernel import digest, files
from longwatch.kernel.digest import Digest
from longwatch.kernel.errors import IntegrityError, NotReadyError, TransientError
from longwatch.learn import registry, splits
from longwatch.learn.decontamination import Index
from longwatch.learn.grading.screening import Finding, Screened
from longwatch.learn.sources.source import Row, Source
from longwatch.learn.tasks import Split, Task

STRETCH_ROWS = 50
LEAST_TRAIN = 16
NOT_NEEDED = "its side has enough"
MANIFEST = "manifest.json"
_ORDER = "order.json"
_MAX_BYTES = 256 * 1024 * 1024
_INFRA_SHARE = 0.1

Validate = Callable[[Sequence[Task]], Iterable[Screened]]


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a window shall hold."""

    number: int
    start_row: int
    problems: Mapping[Split, int]
    """How many of each side; all languages of a problem come with it."""
    max_rows: int = 20_000
    """It ends after so many rows, whatever it has."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a window holds, and what it was made of."""

    number: int
    source: str
    revision: str
    source_digest: str
    provenance: str
    audits: str
    """Digest of the benchmarks that were kept out."""
    start_row: int
    end_row: int
    """The first row that was not read: the next window starts there."""
    exhausted: bool
    """The source has no more rows."""
    registries: Mapping[Split, str]
    """Digest of each side's registry, `train.jsonl` and so on."""
    problems: Mapping[Split, int]
    languages: Mapping[str, int]
    families: Mapping[str, int]
    left_out: Mapping[str, int]
    """How many tasks were left out for each reason."""

    @property
    def shortage(self) -> str:
        """Why the window is too small for an experiment (L6); empty if it is not."""
        found = self.problems.get(Split.TRAIN, 0)
        return "" if found >= LEAST_TRAIN else f"{found} problems to train on, {LEAST_TRAIN} are needed"


class _Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    order: Order
    source: str
    revision: str
    source_digest: str
    audits: str


class _Stretch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    start: int
    end: int
    exhausted: bool
    tasks: tuple[Task, ...]
    left_out: Mapping[str, int]


def prepare(
    folder: Path,
    order: Order,
    source: Source,
    *,
    validate: Validate,
    audits: Index,
    progress: Callable[[int, Mapping[Split, int]], None] = lambda _row, _have: None,
) -> tuple[Manifest, Digest]:
    """Prepare a window in `folder`, or go on where it was left, and return its manifest and the manifest's digest.

    `progress` hears the next row and how many problems of each side there are, after each stretch.

    What was half prepared of another order or source is removed first.

    Raises:
        IntegrityError: the folder holds a whole window of another order or source.
        TransientError: too many tasks could not be validated; nothing of that stretch is kept.
    """
    files.make_folder(folder)
    asked = _Asked(
        order=order,
        source=source.name,
        revision=source.revision,
        source_digest=source.digest,
        audits=audits.digest,
    )
    _bind(folder, asked)
    if (folder / MANIFEST).exists():
        return _finished(folder)
    done = list(_stretches(folder, order))
    while not _complete(order, done):
        done.append(_read(order, done, source, validate, audits))
        files.replace(_place(folder, done[-1].start), msgspec.json.encode(done[-1]))
        progress(done[-1].end, _problems(done))
    return _finish(folder, asked, source.provenance, done)


def load(folder: Path, expected: Digest) -> tuple[Manifest, Mapping[Split, tuple[Task, ...]]]:
    """The manifest of a prepared window and the tasks of each side.

    Raises:
        IntegrityError: the manifest or a registry is not what was bound.
    """
    manifest, found = _finished(folder)
    if found != expected:
        raise IntegrityError(
            f"{folder / MANIFEST} has digest {found}, bound was {expected}: restore it, or prepare the window again"
        )
    sides = {
        split: registry.load(folder / f"{split}.jsonl", digest.digest(bound))
        for split, bound in manifest.registries.items()
    }
    return manifest, sides


def _bind(folder: Path, asked: _Asked) -> None:
    path = folder / _ORDER
    try:
        found = msgspec.json.decode(files.read_bounded(path, _MAX_BYTES), type=_Asked)
    except FileNotFoundError:
        files.replace_json(path, asked)
        return
    except msgspec.DecodeError as error:
        raise _damaged(path, error) from error
    if found == asked:
        return
    if (folder / MANIFEST).exists():
        raise IntegrityError(
            f"{folder} holds a window of another order, source or set of benchmarks: "
            "remove the folder, or take another number"
        )
    # Nothing can refer to what is half prepared: somebody changed the settings since (L26).
    files.remove_recorded(folder, folder.parent)
    files.make_folder(folder)
    files.replace_json(path, asked)


def _finished(folder: Path) -> tuple[Manifest, Digest]:
    path = folder / MANIFEST
    try:
        data = files.read_bounded(path, _MAX_BYTES)
        return msgspec.json.decode(data, type=Manifest), digest.of_bytes(data)
    except FileNotFoundError:
        raise NotReadyError(f"the window in {folder} is not prepared: prepare it first") from None
    except msgspec.DecodeError as error:
        raise _damaged(path, error) from error


def _stretches(folder: Path, order: Order) -> Iterator[_Stretch]:
    """What is done, without a gap."""
    row = order.start_row
    while (path := _place(folder, row)).exists():
        try:
            stretch = msgspec.json.decode(files.read_bounded(path, _MAX_BYTES), type=_Stretch)
        except msgspec.DecodeError as error:
            raise _damaged(path, error) from error
        yield stretch
        if stretch.end <= row:
            return
        row = stretch.end


def _damaged(path: Path, error: Exception) -> IntegrityError:
    return IntegrityError(f"{path} is damaged ({error}): remove the window's folder and prepare it again")


def _place(folder: Path, row: int) -> Path:
    return folder / f"rows-{row:09d}.json"


def _complete(order: Order, done: Sequence[_Stretch]) -> bool:
    if not done:
        return False
    enough = all(_problems(done)[split] >= count for split, count in order.problems.items())
    return enough or done[-1].exhausted or done[-1].end - order.start_row >= order.max_rows


def _read(
    order: Order, done: Sequence[_Stretch], source: Source, validate: Validate, audits: Index
) -> _Stretch:
    start = done[-1].end if done else order.start_row
    end = min(start + STRETCH_ROWS, order.start_row + order.max_rows)
    rows = tuple(source.rows(start, end))
    left_out = Counter(one.why for row in rows for one in row.left_out)
    wanted = tuple(_wanted(order, _problems(done), rows, left_out))
    tasks = _clean(wanted, [one for row in rows for one in row.kin], audits, left_out)
    return _Stretch(
        start=start,
        end=start + len(rows),
        exhausted=len(rows) < end - start,
        tasks=tuple(_valid(tasks, validate, left_out)),
        left_out=left_out,
    )


def _wanted(
    order: Order, have: Mapping[Split, int], rows: Sequence[Row], left_out: Counter[str]
) -> Iterator[Task]:
    """The tasks of sides that do not have enough."""
    room = {split: count - have.get(split, 0) for split, count in order.problems.items()}
    for row in rows:
        split = row.tasks[0].split if row.tasks else None
        if split is not None and room.get(split, 0) > 0:
            room[split] -= 1
            yield from row.tasks
        else:
            left_out[NOT_NEEDED] += len(row.tasks)


def _clean(
    tasks: Sequence[Task], kin: Sequence[Task], audits: Index, left_out: Counter[str]
) -> tuple[Task, ...]:
    """Whole problems without a near duplicate of a benchmark: what is near in one language is so in all."""
    problems = {task.problem for task in tasks}
    looked_at = (*tasks, *(one for one in kin if one.problem in problems))
    spoilt = {one.problem: near for one in looked_at if (near := audits.near(one)) is not None}
    for task in tasks:
        if task.problem in spoilt:
            left_out[f"near duplicate of a benchmark: {spoilt[task.problem].how}"] += 1
    return tuple(task for task in tasks if task.problem not in spoilt)


def _valid(tasks: Sequence[Task], validate: Validate, left_out: Counter[str]) -> Iterator[Task]:
    findings = {one.task: one for one in validate(tasks)}
    _refuse_trouble(tasks, findings)
    for task in tasks:
        finding = findings[task.id].finding
        if finding is Finding.USABLE:
            yield task
        else:
            left_out[finding.value] += 1


def _refuse_trouble(tasks: Sequence[Task], findings: Mapping[str, Screened]) -> None:
    missing = [task.id for task in tasks if task.id not in findings]
    trouble = [one for one in findings.values() if one.finding is Finding.INFRA]
    if missing or len(trouble) > max(1, _INFRA_SHARE * len(tasks)):
        why = trouble[0].why if trouble else f"nothing was said about {missing[0]}"
        raise TransientError(
            f"{len(trouble) + len(missing)} of {len(tasks)} tasks could not be validated: {why}; run `longwatch doctor`"
        )


def _problems(done: Sequence[_Stretch]) -> Counter[Split]:
    return Counter({task.problem: task.split for part in done for task in part.tasks}.values())


def _finish(
    folder: Path, asked: _Asked, provenance: str, done: Sequence[_Stretch]
) -> tuple[Manifest, Digest]:
    tasks = [task for part in done for task in part.tasks]
    splits.check(tasks)
    sides = {split: [task for task in tasks if task.split is split] for split in asked.order.problems}
    manifest = Manifest(
        number=asked.order.number,
        source=asked.source,
        revision=asked.revision,
        source_digest=asked.source_digest,
        provenance=provenance,
        audits=asked.audits,
        start_row=asked.order.start_row,
        end_row=done[-1].end,
        exhausted=done[-1].exhausted,
        registries={split: registry.write(folder / f"{split}.jsonl", some) for split, some in sides.items()},
        problems={split: _problems(done)[split] for split in sides},
        languages=_sorted(Counter(task.language.value for task in tasks)),
        families=_sorted(Counter(task.family for task in tasks)),
        left_out=_sorted(sum((Counter(part.left_out) for part in done), Counter())),
    )
    files.replace_json(folder / MANIFEST, manifest)
    for part in done:
        files.remove_recorded(_place(folder, part.start), folder)
    return _finished(folder)


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
