"""The loader tells everything that is wrong with a file at once, and where."""

import os
from pathlib import Path

import msgspec
import pytest

from longwatch.kernel import config
from longwatch.kernel.errors import ConfigError, ExitCode
from longwatch.kernel.settings import Backoff, KernelSettings


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    size: float = 1.0


class Whole(KernelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    items: tuple[Item | str, ...] = ()
    words: tuple[str, ...] = ()


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "longwatch.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(folder: Path, text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        config.load(written(folder, text), Whole)
    message = str(caught.value)
    assert str(folder / "longwatch.toml") in message
    assert caught.value.exit_code == ExitCode.BLOCKED
    return message


def test_a_whole_file_is_loaded_with_its_defaults(tmp_path: Path) -> None:
    text = 'kind = "x"\nwords = ["a"]\n[backoff]\nfirst_s = 5\n[[items]]\nname = "i"\n'
    settings = config.load(written(tmp_path, text), Whole)
    assert settings.backoff == Backoff(first_s=5.0)
    assert settings.items == (Item("i"),)
    assert settings.words == ("a",)


def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, b'\xef\xbb\xbfkind = "x"\r\n[host]\r\ncores = 2\r\n')
    assert config.load(path, Whole).host.cores == 2


def test_the_shared_tables_can_be_read_from_a_file_of_any_kind(tmp_path: Path) -> None:
    path = written(tmp_path, 'kind = "x"\n[worker]\nadapter = "y"\n')
    assert config.load(path, KernelSettings).kind == "x"


def test_every_problem_of_form_is_told_at_once(tmp_path: Path) -> None:
    message = refusal(
        tmp_path,
        'wrods = ["a"]\nwords = ["a", 3]\n[backoff]\nfirst_s = "soon"\nmax_faults = true\nfirts_s = 1\n'
        '[[items]]\nsize = nan\n[[items]]\nname = "b"\nsize = inf\n[observe]\nzone = 3\n[host]\ncores = 1.5\n',
    )
    assert message.splitlines()[1:] == [
        '  wrods = ["a"]: is no known key; did you mean `words`?',
        "  kind: is missing: add it",
        "  backoff.firts_s = 1: is no known key; did you mean `first_s`?",
        '  backoff.first_s = "soon": must be a number',
        "  backoff.max_faults = true: must be a whole number",
        "  host.cores = 1.5: must be a whole number",
        "  observe.zone = 3: must be text in quotes",
        "  items[0].name: is missing: add it",
        "  items[0].size = NaN: must be a finite number",
        "  items[1].size = Infinity: must be a finite number",
        "  words[1] = 3: must be text in quotes",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[backoff]\nfirst_s = 0", "backoff.first_s = 0.0: must be more than 0"),
        ("[backoff]\nfirst_s = -1e9", "backoff.first_s = -1000000000.0: must be more than 0"),
        ("[backoff]\nfirst_s = 1000", "backoff.max_s = 900.0: must be at least 1000"),
        ("[backoff]\nmax_s = 1e300", "must be at most 315360000 (ten years)"),
        ("[backoff]\nmax_faults = 0", "backoff.max_faults = 0: must be at least 1"),
        ("[backoff]\nmax_park_s = -1", "backoff.max_park_s"),
        ("[backoff]\nmax_s = inf", "backoff.max_s = Infinity: must be a finite number"),
        ("[host]\ncores = -1", "host.cores = -1: must be at least 0"),
        ("[host]\nlogs_bytes = 5", "host.logs_bytes = 5: must be at least"),
        ("[host]\nfree_disk_bytes = 99999999999999999999", "must fit in 64 bits"),
        ('[host]\nmarkers = ["ok", ""]', 'host.markers[1] = "": must be the path of a file'),
        ("[observe]\nheartbeat_s = 0", "observe.heartbeat_s"),
        ('[observe]\nzone = "Europe/Berln"', 'did you mean "Europe/Berlin"?'),
        ('[observe]\nzone = "../../etc/passwd"', "observe.zone"),
        ('[observe]\nzone = "Europe"', "observe.zone"),
        ('[observe]\nzone = ""', "observe.zone"),
        ('[observe]\nzone = "\\u0000"', "observe.zone"),
        ("observe = 3", "must be a table: write its keys in { }"),
        ('words = "a"', "must be a list: write it in [ ]"),
        ("[[backoff]]\n", "must be a table"),
        ("words = 1979-05-27", "words"),
    ],
)
def test_a_wrong_value_is_named_with_its_mend(tmp_path: Path, text: str, told: str) -> None:
    lines = text.split("\n")
    head = 'kind = "x"\n'
    assert told in refusal(tmp_path, head + "\n".join(lines))


def test_several_problems_of_meaning_are_told_at_once(tmp_path: Path) -> None:
    message = refusal(
        tmp_path, 'kind = "x"\n[backoff]\nfirst_s = 0\n[host]\ncores = -1\n[observe]\nzone = "No"\n'
    )
    assert "3 problems" in message
    assert all(key in message for key in ("backoff.first_s", "host.cores", "observe.zone"))


def test_the_applications_rules_join_the_kernels(tmp_path: Path) -> None:
    path = written(tmp_path, 'kind = "x"\n[host]\ncores = -1\n')
    with pytest.raises(ConfigError, match=r"(?s)host.cores.*words: say something"):
        config.load(path, Whole, lambda _: [config.Problem("words", "say something")])


def test_a_secret_pasted_in_place_of_its_name_is_not_repeated(tmp_path: Path) -> None:
    message = refusal(tmp_path, 'kind = "x"\n[observe]\nsecrets = ["KEY", "sk-very-secret"]\n')
    assert "observe.secrets[1]" in message
    assert "very-secret" not in message


def test_long_values_are_shortened(tmp_path: Path) -> None:
    assert len(refusal(tmp_path, f'kind = "x"\nwords = "{"a" * 5000}"\n')) < 400


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('kind = "x"\nwords = [', "line 2, column 10, the end of the file"),
        ("kind = \n", "at line 1, column 8"),
        ('kind = "x"\nkind = "y"\n', "line"),
        ("a = " + "[" * 20000, "not valid TOML"),
        ("a = " + "9" * 5000, "not valid TOML"),
        (b'kind = "x"\n\xff\n', "not UTF-8 text (line 2)"),
        (b"\x00", "not valid TOML"),
    ],
)
def test_what_is_no_toml_is_told_with_its_place(tmp_path: Path, text: str | bytes, told: str) -> None:
    assert told in refusal(tmp_path, text)


def test_a_missing_file_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="longwatch init migrate"):
        config.load(tmp_path / "longwatch.toml", Whole)


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("elsewhere")
    for name in ("fifo", "folder", "link"):
        with pytest.raises(ConfigError, match=name):
            config.load(tmp_path / name, Whole)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "longwatch.toml"
    with path.open("wb") as file:
        file.truncate(10 * 1024**3)
    with pytest.raises(ConfigError, match="more than the allowed"):
        config.load(path, Whole)


def test_the_kind_is_read_whatever_else_is_wrong(tmp_path: Path) -> None:
    assert config.kind_of(written(tmp_path, 'kind = "learn"\nnonsense = 1\n')) == "learn"
    with pytest.raises(ConfigError, match="names no kind of watch"):
        config.kind_of(written(tmp_path, "kind = 3\n"))


def test_a_table_where_text_is_expected_is_a_problem_not_a_crash() -> None:
    problems = list(config.conform({"items": [{"name": {"a": 1}}, 3, []], "kind": []}, Whole))
    assert [problem.where for problem in problems] == [
        "kind = []",
        'items[0].name = {"a": 1}',
        "items[1] = 3",
        "items[2] = []",
    ]
