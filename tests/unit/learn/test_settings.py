"""What a person may write into a learn watch's `longwatch.toml`: each mistake is named with its mend."""

import msgspec
import pytest
import tomlkit

from longwatch.kernel.errors import ConfigError
from longwatch.learn import settings
from longwatch.learn.settings import RECIPE, LearnSettings, Recipe, problems


def load(tmp_path, **tables):
    (tmp_path / settings.FILE).write_text(tomlkit.dumps({"kind": "learn", **tables}))
    return settings.load(tmp_path)


@pytest.mark.guarantee("L8", "L9", "L11")
@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("training", "rank", 4),
        ("training", "learning_rate", 3e-4),
        ("training", "learning_rate", 0.0),
        ("training", "epochs", 4),
        ("training", "epochs", 0),
        ("training", "max_steps", 501),
        ("training", "max_steps", 0),
        ("training", "max_tokens", 4097),
        ("training", "max_tokens", 15),
        ("training", "batch", 0),
        ("training", "checkpoint_steps", 0),
        ("training", "samples", 0),
        ("training", "temperature", -0.1),
        ("training", "temperature", 0.0),
        ("training", "seed", -1),
        ("training", "tasks_per_round", 0),
        ("training", "max_examples", 0),
        ("training", "replay_rows", -1),
        ("experiment", "rounds", 0),
        ("experiment", "hours", 0.001),
        ("experiment", "hours", 24.5),
    ],
)
def test_a_recipe_out_of_its_bounds_is_refused_by_file_key_value_and_mend(tmp_path, table, key, value):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, **{table: {key: value}})
    assert str(error.value).startswith(f"{tmp_path / settings.FILE}: {table}.{key} = {value}: must ")


@pytest.mark.guarantee("L11")
def test_every_number_of_the_recipe_has_bounds_and_both_of_them_are_allowed():
    fields = {field.name: field.type for field in msgspec.structs.fields(Recipe)}
    assert set(RECIPE) == {name for name, kind in fields.items() if kind in {int, float}} - {"rank"}
    for place in (0, 1):
        edge = {key: fields[key](bounds[place]) for key, bounds in RECIPE.items()}
        assert list(problems(LearnSettings(kind="learn", training=Recipe(**{**edge, "samples": 1})))) == []
    assert list(problems(LearnSettings(kind="learn"))) == []


@pytest.mark.guarantee("L11")
def test_all_that_is_wrong_is_told_at_once(tmp_path):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, training={"rank": 7, "epochs": 9}, experiment={"rounds": 0})
    for named in ("training.rank", "training.epochs", "experiment.rounds"):
        assert named in str(error.value)
