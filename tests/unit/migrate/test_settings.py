"""Settings of a migrate watch: nothing begins that could never be verified."""

import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longwatch.kernel import config
from longwatch.kernel.errors import ConfigError
from longwatch.migrate.names import bad_branch
from longwatch.migrate.settings import Check, MigrateSettings, load, problems

GOOD = """kind = "migrate"
[repository]
branch = "main"
[worker]
adapter = "codex"
[[checks]]
name = "tests"
argv = ["pytest", "-q"]
"""


def loaded(folder: Path, text: str) -> MigrateSettings:
    (folder / "longwatch.toml").write_text(text)
    return load(folder)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, text)
    assert str(folder / "longwatch.toml") in str(caught.value)
    return str(caught.value)


def test_a_small_file_is_enough(tmp_path: Path) -> None:
    settings = loaded(tmp_path, GOOD)
    assert settings.checks[0].argv == ("pytest", "-q")
    assert settings.policy_in_force().required_kinds == ("test",)
    assert not settings.worker.network


@pytest.mark.guarantee("M23")
def test_a_watch_without_checks_is_refused(tmp_path: Path) -> None:
    assert "checks: there are none" in refusal(tmp_path, GOOD[: GOOD.index("[[checks]]")])
    assert "checks: there are none" in refusal(tmp_path, "checks = []\n" + GOOD[: GOOD.index("[[checks]]")])


@pytest.mark.guarantee("M20", "M23")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD + 'kind = "lint"\n', 'no check has the required kind: add one with kind = "test"'),
        (GOOD + '[policy]\nrequired_kinds = ["test", "build"]\n', 'add one with kind = "build"'),
        (GOOD + 'kind = "build"\n[policy]\nrequired_kinds = []\n', 'add one with kind = "test"'),
        (GOOD + 'kind = "build"\n[policy]\nrequired_kinds = ["build"]\n', 'must hold "test"'),
        (GOOD + 'census = "none"\n', "must count its tests"),
    ],
)
def test_required_kinds_cannot_be_configured_away(tmp_path: Path, text: str, told: str) -> None:
    assert told in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"migrate"', '"learn"', 'kind = "learn": must be "migrate"'),
        ('"codex"', '"codx"', 'worker.adapter = "codx": is no adapter; did you mean `codex`?'),
        ('"codex"', '"command"', "the adapter `command` needs the program"),
        ('"codex"', '"replay"', "the adapter `replay` needs the one folder"),
        ('"codex"', '"replay"\nargv = ["a", "b"]', "the adapter `replay` needs the one folder"),
        ('"codex"', '"codex"\nargv = [""]', "no empty word"),
        ('"codex"', '"codex"\nmax_attempts = 0', "worker.max_attempts = 0: must be at least 1"),
        ('"codex"', '"codex"\nwall_s = 0', "worker.wall_s = 0.0: must be more than 0"),
        ('"codex"', '"codex"\nidle_s = -5', "worker.idle_s"),
        ('"codex"', '"codex"\nretry_delay_s = -1', "worker.retry_delay_s = -1.0: must be at least 0"),
        ('"codex"', '"codex"\nmemory_bytes = 0', "worker.memory_bytes"),
        ('"codex"', '"codex"\nwall_s = inf', "must be a finite number"),
        ('"codex"', '"codex"\ninterrupted = "maybe"', "known are reconcile, retry"),
        ('"codex"', '"codex"\nenvironment = ["KEY=1"]', "worker.environment[0]: must be the name"),
        ('"codex"', '"codex"\nprompt = "/etc/passwd"', "worker.prompt"),
        ('"main"', '"HEAD"', 'repository.branch = "HEAD"'),
        ('"main"', '"-f"', 'repository.branch = "-f"'),
        ('"main"', '"main"\npath = ".."', "repository.path"),
        ('"main"', '"main"\npath = "/srv"', "repository.path"),
        ('"main"', '"main"\ntasks = "../tasks"', "repository.tasks"),
        ('"main"', '"main"\nprotected = ["!a"]', "must not negate"),
        ('"main"', '"main"\ntests = ["../t"]', "repository.tests"),
        ('"main"', '"main"\ntask = "t"', "did you mean `tasks`?"),
        ('"tests"', '"a/b"', 'checks[0].name = "a/b"'),
        ('["pytest", "-q"]', "[]", "checks[0].argv = []: must begin with a program"),
        ('["pytest", "-q"]', '"pytest -q"', "must be a list"),
        ('["pytest", "-q"]', '["x"]\ncwd = "../x"', "checks[0].cwd"),
        ('["pytest", "-q"]', '["x"]\ncwd = "/"', "checks[0].cwd"),
        ('["pytest", "-q"]', '["x"]\ntimeout_s = 0', "checks[0].timeout_s"),
        ('["pytest", "-q"]', '["x"]\n[[checks]]\nname = "Tests"\nargv = ["y"]', "2 checks have this name"),
        ('["pytest", "-q"]', '["x"]\n[sandbox]\nkind = "none "', "is no sandbox; did you mean `none`?"),
        ('["pytest", "-q"]', '["x"]\n[sandbox]\nexpose = ["~/.cargo"]', "must be a whole path"),
        ('["pytest", "-q"]', '["x"]\n[sandbox]\nexpose = ["//"]', "must not be the whole file system"),
        ('["pytest", "-q"]', '["x"]\n[sandbox]\nshare = ["./."]', "not all of it"),
        ('["pytest", "-q"]', '["x"]\n[sandbox]\nshare = [".git"]', "must not name .git"),
        ('["pytest", "-q"]', '["x"]\n[sandbox]\ntmp_bytes = 0', "sandbox.tmp_bytes"),
        (
            '["pytest", "-q"]',
            '["x"]\n[budget]\ntokens = 5\ntokens_per_attempt = 6',
            "no attempt could ever start",
        ),
        ('["pytest", "-q"]', '["x"]\n[budget]\nusd = -1', "budget.usd"),
        ('["pytest", "-q"]', '["x"]\n[budget]\ntokens = 5', "budget.tokens_per_attempt = 0"),
        ('["pytest", "-q"]', '["x"]\n[budget]\nusd = 5', "budget.usd_per_attempt = 0"),
        ('["pytest", "-q"]', '["x"]\n[publish]\ncommit = false\npush = true', "publish.push = true"),
        ('["pytest", "-q"]', '["x"]\n[publish]\nremote = "--upload-pack=x"', "publish.remote"),
        ('["pytest", "-q"]', '["x"]\n[publish]\nremote = "https://host/x"', "publish.remote"),
        ('["pytest", "-q"]', '["x"]\n[publish]\npush_tries = 0', "publish.push_tries"),
        ('["pytest", "-q"]', '["x"]\n[policy]\nforbidden_words = [" "]', "must have no empty word"),
        ('["pytest", "-q"]', '["x"]\n[observe]\nzone = "Nowhere"', "observe.zone"),
    ],
)
def test_a_wrong_value_is_named_with_its_mend(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert told in refusal(tmp_path, GOOD.replace(old, new))


def test_problems_of_all_tables_are_told_at_once(tmp_path: Path) -> None:
    text = (
        GOOD.replace('"codex"', '"x"').replace('"main"', '"a b"')
        + "timeout_s = 0\n[publish]\npush_tries = 0\n"
    )
    message = refusal(tmp_path, text)
    assert "4 problems" in message


@pytest.mark.guarantee("K34")
def test_a_symbolic_link_that_leads_outside_is_refused(tmp_path: Path) -> None:
    outside, watch = tmp_path / "outside", tmp_path / "watch"
    outside.mkdir()
    watch.mkdir()
    for name in ("repository", "tasks", "prompt.md", "tools"):
        (watch / name).symlink_to(outside)
    assert 'repository.path = "repository"' in refusal(
        watch, GOOD.replace('"main"', '"main"\npath = "repository"')
    )
    message = refusal(watch, GOOD)
    assert "repository.tasks = " in message
    assert "worker.prompt = " in message
    assert 'checks[0].cwd = "tools/x"' in refusal(watch, GOOD + 'cwd = "tools/x"\n')


def test_a_repository_inside_the_watch_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    assert loaded(tmp_path, GOOD.replace('"main"', '"main"\npath = "code"')).repository.path == "code"


def numbers() -> list[tuple[str, str]]:
    tables = [
        field for field in msgspec.structs.fields(MigrateSettings) if field.name not in {"kind", "checks"}
    ]
    structs = {field.name: field.type for field in tables} | {"checks": Check}
    fields = [(table, field) for table, struct in structs.items() for field in msgspec.structs.fields(struct)]
    return [(table, field.name) for table, field in fields if field.type in {int, float}]


@pytest.mark.parametrize(("table", "name"), numbers())
def test_no_number_may_be_below_zero_or_out_of_all_proportion(tmp_path: Path, table: str, name: str) -> None:
    data = tomllib.loads(GOOD)
    target = data["checks"][0] if table == "checks" else data.setdefault(table, {})
    for value in (-1, 10**400, 1e300 if name.endswith("_s") else float("inf")):
        target[name] = value
        wrong = list(config.conform(data, MigrateSettings))
        if not wrong:
            settings = msgspec.convert(data, MigrateSettings)
            wrong = [*config.kernel_problems(settings), *problems(settings)]
        assert wrong, value


BRANCHES = st.text(st.sampled_from("aB0/.-@{}~^:?*[\\ _lock\x7f\x01é"), max_size=8) | st.sampled_from(
    ["a.lock", "a.lock/b", ".a", "a/.b", "a.", "a..b", "@", "@{u}", "a/@", "/a", "a/", "feature/x-1"]
)


@given(BRANCHES)
def test_a_branch_name_is_refused_whenever_git_refuses_it(name: str) -> None:
    if not bad_branch(name):
        command = ["git", "check-ref-format", f"refs/heads/{name}"]
        assert subprocess.run(command, check=False).returncode == 0
        assert not name.startswith("-")


@pytest.mark.parametrize("name", ["main", "feature/x-1", "a/@", "v1.2", "é", "a{b}", "user@host"])
def test_ordinary_branch_names_are_let_through(name: str) -> None:
    assert bad_branch(name) == ""
