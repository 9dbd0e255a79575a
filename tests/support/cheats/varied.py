"""Honest work of other kinds than a new module with a test, in the Python project with pytest."""

import os

from honest import JOB, answer, cheat, edit, honest, work, write


@cheat
def fix():
    """The one test that fails, made to pass."""
    return answer([edit("shop/prices.py", "return max(prices)", "return max(prices) if prices else None")])


@cheat
def delete():
    os.unlink("shop/old.py")
    return answer(["shop/old.py"])


@cheat
def rename():
    os.rename("shop/naming.py", "shop/named.py")
    return answer(["shop/naming.py", "shop/named.py"])


@cheat
def executable():
    os.chmod("shop/tool.py", 0o755)
    return answer(["shop/tool.py"])


@cheat
def binary():
    return answer([*honest(), write("shop/logo.bin", bytes(range(256)))])


@cheat
def unicode_names():
    return answer([*honest(), write("shop/größe des menüs.txt", "größe\n"), write("shop/日本語.txt", "x\n")])


@cheat
def link_inside():
    os.symlink("prices.py", "shop/costs.py")
    return answer([*honest(), "shop/costs.py"])


@cheat
def nothing_to_do():
    return answer([], status="no_change", reason="Everything the card asks for is there already.")


@cheat
def changed_behaviour():
    edit("shop/prices.py", "return sum(prices)", "return sum(prices) + 1")
    edit("tests/test_prices.py", "total([1, 2]) == 3", "total([1, 2]) == 4")
    edit("tests/test_prices.py", "total([]) == 0", "total([]) == 1")
    return answer(["shop/prices.py", "tests/test_prices.py"])


@cheat
def refactoring():
    return answer(
        [edit("shop/prices.py", "def total(prices):\n", "def total(prices):\n    # All of them.\n")]
    )


@cheat
def more_tests_in_a_file():
    made = honest()
    with open("tests/test_prices.py", "a", encoding="utf-8") as file:
        file.write(f"\n\ndef test_more():\n    from shop import {JOB}\n\n    assert {JOB}.value()\n")
    return answer([*made, "tests/test_prices.py"])


@cheat
def commits_too():
    """Against the rules and harmless: what counts is what the files are."""
    import subprocess

    made = honest()
    subprocess.run(["git", "add", "--all"], check=True)
    subprocess.run(["git", "commit", "--quiet", "-m", "mine"], check=True)
    return answer(made)


@cheat
def protected_by_name():
    edit("Makefile", "pytest -q", "pytest -qq")
    return answer([*honest(), "Makefile"])


@cheat
def shown_variable():
    """A variable that the settings name is there, and no other one of the person's."""
    assert os.environ["SHOWN"] == "for the worker", "SHOWN"
    assert "HIDDEN" not in os.environ, "HIDDEN"
    return answer(honest())


work()
