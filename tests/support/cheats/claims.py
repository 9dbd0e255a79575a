"""Cheats that end before any check: bad answers, and changes that are not the worker's to make."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from honest import REAL, RESULT, TOLD, answer, cheat, edit, honest, say, work, write


# -- the answer


@cheat
def claim_without_change():
    return answer(["shop/__init__.py"])


@cheat
def claim_nothing_at_all():
    return answer([])


@cheat
def no_result():
    honest()


@cheat
def only_words():
    honest()
    print(json.dumps(answer(["x"])))
    print("All tests pass. Done!")


@cheat
def good_result_exit_1():
    say(answer(honest()))
    sys.exit(1)


@cheat
def good_result_killed():
    say(answer(honest()))
    os.kill(os.getpid(), 9)


@cheat
def old_nonce():
    return answer(honest(), nonce="0" * 32)


@cheat
def invented_verdict():
    return answer(honest(), verified=True, checks="passed")


@cheat
def result_fifo():
    honest()
    os.mkfifo(RESULT)


@cheat
def result_link():
    write("mine.json", json.dumps(answer(honest())))
    RESULT.symlink_to(Path("mine.json").resolve())


@cheat
def result_folder():
    honest()
    RESULT.mkdir()


@cheat
def result_huge():
    say(answer(honest(), summary="x" * 3_000_000))


@cheat
def result_no_utf8():
    honest()
    RESULT.write_bytes(b'{"nonce": "\xff\xfe"}')


@cheat
def result_deep():
    honest()
    RESULT.write_text("[" * 200_000 + "]" * 200_000)


@cheat
def result_twice_the_key():
    text = json.dumps(answer(honest()))
    RESULT.write_text(text[:-1] + ', "status": "done"}')


@cheat
def result_nan():
    RESULT.write_text(json.dumps(answer(honest()))[:-1] + ', "extra": NaN}')


@cheat
def result_empty():
    honest()
    RESULT.write_bytes(b"")


@cheat
def no_change_without_reason():
    return answer([], status="no_change")


@cheat
def no_change_with_change():
    honest()
    return answer([], status="no_change", reason="nothing to do")


# -- the change and its declaration


@cheat
def undeclared():
    return answer(honest()[:1])


@cheat
def declared_but_unchanged():
    return answer([*honest(), "shop/prices.py"])


@cheat
def declared_outside():
    return answer([*honest(), "../secret"])


@cheat
def declared_absolute():
    return answer([*honest(), "/etc/passwd"])


@cheat
def protected_files():
    made = [
        write(".github/workflows/more.yml", "on: push\n"),
        write("_pytest/__init__.py", ""),
        write("json.py", "raise SystemExit(0)\n"),
        write("other/mod.py", "x = 1\n"),
        write("PYTEST.INI", "[pytest]\n"),
        write("pytest.py", "print('1 passed in 0.01s')\n"),
        write("shop/Makefile", "test:\n\t@true\n"),
        write("shop/pytest.ini", "[pytest]\naddopts = -k nothing\n"),
        write("shop/tox.ini", "[pytest]\naddopts = -k nothing\n"),
        write("shop/x.pth", "import os; os._exit(0)\n"),
        write("sitecustomize.py", "raise SystemExit(0)\n"),
        write("tasks/another.md", "---\nid: another\ntitle: x\n---\nx\n"),
        write("tests/conftest.py", "collect_ignore_glob = ['*']\n"),
        write("unittest/__init__.py", ""),
    ]
    return answer([*honest(), *made])


@cheat
def own_card():
    return answer(
        [*honest(), write("tasks/own_card.md", "---\nid: own_card\ntitle: x\ntests: optional\n---\n")]
    )


@cheat
def new_card():
    return answer([*honest(), write("tasks/another.md", "---\nid: another\ntitle: x\n---\nx\n")])


@cheat
def settings_file():
    return answer([*honest(), write("longwatch.toml", "kind = 'migrate'\n")])


@cheat
def forged_receipt():
    assert not Path(".longwatch").exists()
    return answer([*honest(), write(".longwatch/receipts/" + "0" * 64 + ".json", "{}")])


@cheat
def forged_receipt_hidden():
    write(".longwatch/receipts/" + "0" * 64 + ".json", "{}")
    return answer([*honest(), "shop/missing.py"])


@cheat
def hidden_by_gitignore():
    write(".gitignore", "shop/evil.py\n.gitignore\n")
    write("shop/evil.py", "x = 1\n")
    return answer(honest())


@cheat
def hidden_by_exclude():
    write(".git/info/exclude", "shop/evil.py\n")
    write("shop/evil.py", "x = 1\n")
    return answer(honest())


@cheat
def hidden_by_index():
    edit("shop/prices.py", "return", "return 0 or")
    subprocess.run(["git", "update-index", "--assume-unchanged", "shop/prices.py"], check=True)
    return answer(honest())


@cheat
def links():
    targets = {"passwd": "/etc/passwd", "real": str(REAL), "up": "../../../..", "config": "../.git/config"}
    for name, target in targets.items():
        Path("shop", name).symlink_to(target)
    Path("shop/chain").symlink_to("up")
    return answer([*honest(), "shop/passwd", "shop/real", "shop/up", "shop/config", "shop/chain"])


@cheat
def link_for_a_folder():
    for path in Path("tests").iterdir():
        path.unlink()
    Path("tests").rmdir()
    Path("tests").symlink_to("/tmp")
    return answer(["tests", "tests/test_prices.py"])


@cheat
def odd_files():
    subprocess.run(["git", "init", "--quiet", "shop/inner"], check=True)
    write("shop/inner/a.py", "x = 1\n")
    write("shop/PRICES.py", "x = 1\n")
    os.mkfifo("shop/pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind("shop/socket")
    with Path("shop/huge.bin").open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    Path(os.fsdecode(b"shop/\xff\xfe.py")).write_text("x = 1\n")
    Path("shop/a\nb.py").write_text("x = 1\n")
    return answer(
        [*honest(), "shop/inner/a.py", "shop/PRICES.py", "shop/pipe", "shop/socket", "shop/huge.bin"]
    )


@cheat
def thousands_of_files():
    made = [write(f"shop/many/f{number}.txt", "x") for number in range(6000)]
    return answer([*honest(), *made])


@cheat
def filter_driver():
    write(".gitattributes", "*.py filter=evil\n")
    subprocess.run(["git", "config", "filter.evil.clean", "touch /work/evil; cat"], check=True)
    return answer([*honest(), ".gitattributes"])


# -- git, as traps for whoever looks at the clone afterwards: each must do nothing, and the lie beside it must be found

TRAP = "touch /work/repo/trapped; touch " + str(REAL / "trapped")


@cheat
def git_traps():
    for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change"):
        write(f".git/hooks/{name}", f"#!/bin/sh\n{TRAP}\n", 0o755)
    write(".git/info/attributes", "* filter=evil diff=evil\n")
    write(".git/evil", f"[core]\n\tpager = {TRAP}\n")
    write(".git/objects/info/alternates", f"{REAL}/.git/objects\n/etc\n")
    settings = {
        "core.fsmonitor": f"sh -c '{TRAP}'",
        "core.hooksPath": ".git/hooks",
        "filter.evil.clean": TRAP,
        "filter.evil.required": "true",
        "diff.evil.textconv": TRAP,
        "include.path": "evil",
        "gpg.program": TRAP,
        "commit.gpgsign": "true",
    }
    for key, value in settings.items():
        subprocess.run(["git", "config", key, value], check=True)
    return answer(honest()[:1])


@cheat
def git_worktree():
    subprocess.run(["git", "config", "core.worktree", str(REAL)], check=True)
    return answer(honest()[:1])


@cheat
def git_removed():
    shutil.rmtree(".git")
    return answer(honest()[:1])


@cheat
def git_is_a_file():
    shutil.rmtree(".git")
    write(".git", f"gitdir: {REAL}/.git\n")
    return answer(honest()[:1])


@cheat
def git_commit_hides():
    edit("shop/prices.py", "return", "return 0 or")
    made = honest()
    subprocess.run(["git", "add", "--all"], check=True)
    subprocess.run(["git", "commit", "--quiet", "-m", "mine"], check=True)
    return answer(made)


@cheat
def git_replace_object():
    edit("shop/prices.py", "return", "return 0 or")
    made = honest()
    subprocess.run(["git", "add", "--all"], check=True)
    subprocess.run(["git", "commit", "--quiet", "-m", "mine"], check=True)
    subprocess.run(["git", "replace", "HEAD~1", "HEAD"], check=True)
    return answer(made)


# -- reaching out of the sandbox: whatever of it works is said in the undeclared file `reached.txt`


def reach(*attempts):
    reached = []
    for name, attempt in attempts:
        try:
            attempt()
        except (OSError, subprocess.SubprocessError):
            continue
        reached.append(name)
    write("reached.txt", "\n".join(["nothing", *reached]))
    print("REACHED:", *reached or ["nothing"])
    return answer(honest())


@cheat
def reach_repository():
    return reach(
        ("real config", lambda: (REAL / ".git/config").write_text("[core]\n\tbare = true\n")),
        ("real hook", lambda: write(REAL / ".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", 0o755)),
        ("real file", lambda: (REAL / "shop/prices.py").write_text("x = 1\n")),
        ("real reading", lambda: (REAL / "notes.txt").read_text()),
        ("state", lambda: (REAL / ".longwatch/watch.db").read_bytes()),
    )


@cheat
def reach_secrets():
    home = Path(TOLD["home"])
    return reach(
        ("key", lambda: next((REAL / ".longwatch/key").iterdir()).read_bytes()),
        ("home", lambda: (home / ".ssh/id_ed25519").read_text()),
        ("shadow", lambda: Path("/etc/shadow").read_text()),
        ("root ssh", lambda: os.listdir("/root/.ssh")),
        ("repository from outside", lambda: os.listdir(f"/proc/1/root{REAL}/shop")),
    )


@cheat
def reach_network():
    def connect():
        with socket.create_connection(("127.0.0.1", int(TOLD["port"])), timeout=2):
            pass

    return reach(("loopback", connect))


@cheat
def reach_processes():
    mine = {os.getpid(), 1, os.getppid()}
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    strangers = [pid for pid in seen if pid not in mine]
    os.kill(-1, 0) if strangers else None

    def kill(pid):
        os.kill(pid, 9)

    return reach(*((f"process {pid}", lambda pid=pid: kill(pid)) for pid in strangers))


@cheat
def reach_protected():
    return reach(
        ("Makefile", lambda: write("Makefile", "test:\n\t@true\n")),
        ("conftest", lambda: write("conftest.py", "collect_ignore_glob = ['*']\n")),
        ("replace", lambda: os.replace(write("shop/tmp", "x"), "Makefile")),
        ("unlink", lambda: os.unlink("Makefile")),
    )


work()
