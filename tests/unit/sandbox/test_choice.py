"""Which sandbox the settings choose: never none by itself, never a container without an image."""

import pytest

from longwatch.learn.settings import SandboxSettings as OfLearn
from longwatch.migrate.settings import SandboxSettings as OfMigrate
from longwatch.sandbox import SANDBOXES, choice
from longwatch.sandbox.choice import Sandboxing

DIGEST = "@sha256:" + "a" * 64


@pytest.mark.guarantee("M15")
def test_by_default_it_is_bubblewrap() -> None:
    assert OfMigrate().kind == OfLearn().kind == Sandboxing().kind == "bubblewrap"
    assert set(choice.KINDS) == set(SANDBOXES)


@pytest.mark.parametrize(
    ("kind", "image"),
    [("bubblewrap", ""), ("none", ""), ("docker", "tools"), ("podman", f"localhost:5000/a/tools:1{DIGEST}")],
)
def test_a_choice_that_makes_sense(kind: str, image: str) -> None:
    assert list(choice.problems(kind, image)) == []


@pytest.mark.guarantee("K30")
@pytest.mark.parametrize(
    ("kind", "image", "told"),
    [
        ("dokcer", "tools", "is no sandbox; did you mean `docker`?"),
        ("podman", "", "must name an image that is on this machine"),
        ("bubblewrap", "tools", "has a meaning only with kind"),
        ("docker", "--privileged", "is no name of an image"),
        ("docker", "a b", "is no name of an image"),
        ("docker", "tools\n", "is no name of an image"),
    ],
)
def test_a_bad_choice_is_told_with_its_mend(kind: str, image: str, told: str) -> None:
    (problem,) = choice.problems(kind, image)
    assert told in problem.mend


@pytest.mark.guarantee("L10")
def test_answers_are_never_graded_without_a_sandbox() -> None:
    (problem,) = choice.problems("none", "", kinds=choice.CONFINING)
    assert "is no sandbox" in problem.mend


def test_a_digest_pins_an_image_and_a_tag_does_not() -> None:
    assert choice.pinned(f"tools{DIGEST}")
    assert choice.pinned("sha256:" + "a" * 64)
    assert not choice.pinned("tools:1.2")


def test_only_a_container_needs_the_variables_of_a_client() -> None:
    assert Sandboxing().variables == ()
    assert "DOCKER_HOST" in Sandboxing("docker", "tools").variables
