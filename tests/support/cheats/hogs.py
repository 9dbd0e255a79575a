"""Workers that misbehave as processes: they flood, hang, hide, fill and multiply."""

import os
import sys
import textwrap
import time
from pathlib import Path

from honest import JOB, TOLD, answer, cheat, edit, honest, say, work, write

MARK = TOLD["mark"]


def daemon(seconds=600):
    """A process that leaves its session, its parent, its descriptors and its environment."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 1024)
            os.execve("/bin/sleep", [f"{MARK}-{JOB}", str(seconds)], {})
        os._exit(0)
    os.wait()


@cheat
def flood():
    block = b"x" * 79 + b"\n"
    while True:
        os.write(1, block * 1000)


@cheat
def flood_of_errors():
    while True:
        os.write(2, os.urandom(65536))


@cheat
def long_line():
    honest()
    os.write(1, b"y" * 1_000_000)
    os.write(1, b"y" * 1_000_000 + b"\n")
    os.write(2, b"\xff\xfe\x80" * 1000 + b"\n")
    os.write(1, b'{"type": "turn.completed", "usage": {}}\n\x00\x1b[2J\x1b]0;title\x07\n')


@cheat
def silence():
    time.sleep(600)


@cheat
def silence_after_result():
    say(answer(honest()))
    time.sleep(600)


@cheat
def busy_after_result():
    say(answer(honest()))
    while True:
        print("still busy", flush=True)
        time.sleep(0.1)


@cheat
def ignores_term():
    import signal

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)


@cheat
def escaped_daemon():
    for _ in range(3):
        daemon()
    return answer(honest()[:1])


@cheat
def daemon_keeps_writing():
    if os.fork() == 0:
        os.setsid()
        while True:
            try:
                Path("shop/late.py").write_text("x = 1\n")
                os.write(1, b"still here\n")
            except OSError:
                pass
            time.sleep(0.01)
    return answer(honest()[:1])


@cheat
def fork_bomb():
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)


@cheat
def thread_bomb():
    import threading

    while True:
        try:
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        except RuntimeError:
            sys.exit(1)


@cheat
def memory_hog():
    held = []
    while True:
        held.append(bytearray(os.urandom(1) * 20_000_000))


@cheat
def memory_hog_in_children():
    for _ in range(6):
        if os.fork() == 0:
            held = bytearray(b"z" * 120_000_000)
            time.sleep(600)
            sys.exit(len(held))
    time.sleep(600)


@cheat
def memory_hog_in_tmpfs():
    honest()
    for folder in ("/tmp", "/dev/shm", "/var/tmp", str(Path.home())):
        with open(f"{folder}/fill", "wb") as file:
            while True:
                try:
                    file.write(b"f" * 1_000_000)
                except OSError:
                    break
    sys.exit(1)


@cheat
def disk_filler():
    with open("shop/fill.bin", "wb") as file:
        while True:
            file.write(b"d" * 1_000_000)


@cheat
def many_files_filler():
    for number in range(200):
        with open(f"shop/fill{number}.bin", "wb") as file:
            file.write(b"d" * 3_000_000)
    return answer(honest())


@cheat
def kills_everything():
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != own:
            try:
                os.kill(int(name), 9)
            except OSError:
                continue
    os.kill(-1, 15)


@cheat
def kills_its_parents():
    os.kill(os.getppid(), 9)
    time.sleep(600)


@cheat
def stops_itself():
    import signal

    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)


@cheat
def closes_everything():
    say(answer(honest()))
    os.closerange(0, 1024)
    time.sleep(600)


@cheat
def result_of_a_daemon():
    """The process ends with nothing; a daemon writes the result a moment later."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(0.3)
        say(answer(honest()))
        os._exit(0)
    os._exit(0)


# -- checks as a weapon


def at_import(code):
    """Put code into the production module that every test imports."""
    made = honest()
    text = Path("shop/prices.py").read_text()
    return answer([*made, write("shop/prices.py", textwrap.dedent(code) + "\n" + text)])


@cheat
def check_hangs():
    return at_import("import time\ntime.sleep(600)")


@cheat
def check_leaves_daemon():
    made = honest()
    code = f"""
    import os
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 256)
            os.execv("/bin/sleep", ["{TOLD["mark"]}", "400"])
        os._exit(0)
    """
    write(made[1], textwrap.dedent(code) + open(made[1]).read())
    edit(made[0], "return", "return 1 or")
    return answer(made)


@cheat
def check_fork_bomb():
    return at_import("import os\nwhile True:\n    os.fork()")


@cheat
def check_eats_memory():
    return at_import("held = []\nwhile True:\n    held.append(bytearray(50_000_000))")


@cheat
def check_writes_a_flood():
    return at_import("import os\nwhile True:\n    os.write(2, b'x' * 65536)")


work()
