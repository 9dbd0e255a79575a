"""What only learning has: `init learn`, `fetch`, `set-hours`, `continue`, `prune`, `export` and `grade`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from longwatch.cli.common import HERE, AsJson, WatchDir, exits, out, show, watch_at


def init(
    watch_dir: Annotated[Path, typer.Option("--watch-dir", help="The folder; by default this one.")] = HERE,
    *,
    adopt: Annotated[
        Path | None,
        typer.Option(
            "--adopt",
            metavar="DIR",
            help="Take over the accepted adapter, training data and settings of the learn watch in DIR; it is only read.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make this folder a learn watch: a small code model is fine-tuned for days, and only gets better on evidence."""
    from longwatch.cli import beginning  # noqa: PLC0415 - help needs none of it

    with exits():
        if adopt is not None:
            taken = beginning.adopt(watch_dir.resolve(), adopt.resolve())
            show(taken, as_json=as_json, text=lambda: beginning.adopted_text(taken))
            return
        made = beginning.learn(watch_dir.resolve())
        show(made, as_json=as_json, text=lambda: beginning.learn_text(made))


def fetch(
    what: Annotated[str, typer.Argument(help="student, humaneval, multipl-e, mbpp or mbxp.")] = "student",
    *,
    source: Annotated[
        Path | None, typer.Option("--from", help="A folder that has the files: nothing is downloaded.")
    ] = None,
    offers: Annotated[bool, typer.Option("--list", help="Only list what there is to fetch.")] = False,
) -> None:
    """Fetch the embedded student (92 MB) or a public set of problems once into your cache, checked by digest."""
    from longwatch.learn import fetching  # noqa: PLC0415 - help needs none of it
    from longwatch.learn.student.cache import cache_folder  # noqa: PLC0415 - the same

    def told(what: str, done: int, total: int) -> None:
        if sys.stdout.isatty():
            sys.stdout.write(f"\r\033[K{what}: {done} of {total}")
            sys.stdout.flush()

    with exits():
        if offers:
            out(fetching.listing(cache_folder()))
            return
        text = fetching.fetch(what, cache_folder(), source=source, progress=told)
        out(f"{chr(13) if sys.stdout.isatty() else ''}{text}")


def set_hours(
    hours: Annotated[float, typer.Argument(help="Active hours of one experiment, 0.01 to 24.")],
    watch_dir: WatchDir = HERE,
) -> None:
    """Change how long one experiment may be active. Only in an idle watch; nothing resumes by itself."""
    from longwatch.observe.hours import set_hours as change  # noqa: PLC0415 - help needs none of it

    with exits():
        out(change(watch_at(watch_dir), hours))


def continue_(
    watch_dir: WatchDir = HERE,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what differs, and what is in the way.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let an undecided experiment go on with the sources, settings and libraries that are here now, and its clock."""
    from longwatch.observe import continuing  # noqa: PLC0415 - help needs none of it

    with exits():
        watch = watch_at(watch_dir)
        seen = continuing.look(watch) if dry_run else continuing.move(watch)
        show(seen, as_json=as_json, text=lambda: continuing.text(seen))


def prune(
    watch_dir: WatchDir = HERE,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove what old experiments left and nothing needs. A running watch does it by itself before each experiment."""
    from longwatch.observe import pruning  # noqa: PLC0415 - help needs none of it

    with exits():
        watch = watch_at(watch_dir)
        seen = pruning.look(watch) if dry_run else pruning.prune(watch)
        show(seen, as_json=as_json, text=lambda: pruning.text(seen))


def export(
    target: Annotated[Path, typer.Option("--to", help="The folder to make; it must not exist yet.")],
    watch_dir: WatchDir = HERE,
    *,
    form: Annotated[
        str,
        typer.Option(
            "--format", help="safetensors (a folder for transformers), or gguf (a file for llama.cpp)."
        ),
    ] = "safetensors",
    number: Annotated[
        str,
        typer.Option(
            "--type",
            help="How weights are stored. safetensors: base (as the base model's), f32, f16, bf16; gguf: f16, f32, q8_0.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Merge the champion's adapter into its base model, and prove on the sealed tasks that it is still the champion.

    The watch is only read, so it may run meanwhile; both then share the machine. Nothing appears at the target before all of
    it is written and proved.
    """
    from longwatch.observe import exporting  # noqa: PLC0415 - help needs none of it

    def told(phase: str, label: str, done: int | None, total: int | None) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{phase} {label}{f': {done} of {total}' if total else ''}")
            sys.stderr.flush()

    with exits():
        made = exporting.run(watch_at(watch_dir), target.absolute(), form=form, number=number, told=told)
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
        show(made, as_json=as_json, text=lambda: exporting.text(made))


def grade(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Recorded answers, in one of the forms that the page on languages tells."
        ),
    ],
    language: Annotated[
        str, typer.Option("--language", help="The language of the answers, as `cpp` or `bash`.")
    ],
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="A folder of public files; by default your cache, which `fetch` fills.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Grade recorded answers to HumanEval or MultiPL-E here, and show which verdicts differ from those recorded."""
    from longwatch.learn.fetching import public  # noqa: PLC0415 - help needs none of it
    from longwatch.learn.student.cache import cache_folder  # noqa: PLC0415 - the same
    from longwatch.observe import regrading  # noqa: PLC0415 - the same

    def told(done: int, total: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{done} of {total}")
            sys.stderr.flush()

    with exits():
        folder = data if data is not None else public(cache_folder())
        seen = regrading.run(path, regrading.named(language), folder, told=told)
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
        show(seen, as_json=as_json, text=lambda: regrading.text(seen))
