"""A program that tries to outlive its supervisor. Arguments: the way, and a token by which the test finds its processes."""

import os
import signal
import sys
import time

WAY, TOKEN = sys.argv[1:3]
AGAIN = [sys.executable, __file__]


def linger() -> None:
    """Ignore whatever can be ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


def close_all() -> None:
    os.closerange(0, 256)
    for _ in range(3):
        os.open("/dev/null", os.O_RDWR)


def again(way: str, environment: dict[str, str] | None = None) -> None:
    os.execve(sys.executable, [*AGAIN, way, TOKEN], dict(os.environ) if environment is None else environment)


def in_child(action: object, *arguments: object) -> int:
    pid = os.fork()
    if pid == 0:
        action(*arguments)  # type: ignore[operator]
        os._exit(0)
    return pid


def setsid() -> None:
    def leave() -> None:
        os.setsid()
        close_all()
        again("linger")

    in_child(leave)


def daemon(environment: dict[str, str] | None = None) -> None:
    """Fork twice, leave the session and the folder, close everything."""

    def leave() -> None:
        os.setsid()
        os.chdir("/")
        close_all()
        in_child(again, "linger", environment)

    os.waitpid(in_child(leave), 0)


def holder() -> None:
    """Keep standard output open for ever."""
    in_child(again, "linger")


def respawn() -> None:
    """Two processes that replace each other whenever one is ended."""

    def guard() -> None:
        os.setsid()
        close_all()
        again("guard")

    in_child(guard)


def guard() -> None:
    while True:
        os.waitpid(in_child(again, "linger"), 0)


def comet() -> None:
    """Each process forks the next one and ends at once."""

    def leave() -> None:
        os.setsid()
        close_all()
        while os.fork() == 0:
            pass

    in_child(leave)


def comet_in_new_sessions() -> None:
    """The same, and each one leaves the session of the one before."""

    def leave() -> None:
        close_all()
        while True:
            os.setsid()
            if os.fork():
                os._exit(0)

    in_child(leave)


def bomb() -> None:
    while True:
        try:
            if os.fork() == 0:
                linger()
        except OSError:
            time.sleep(0.1)


def term_ignored() -> None:
    print("ready", flush=True)
    linger()


def says_result_and_stays() -> None:
    print('{"type": "result"}', flush=True)
    linger()


WAYS = {
    "linger": linger,
    "setsid": setsid,
    "daemon": daemon,
    "daemon-without-environment": lambda: daemon({}),
    "holder": holder,
    "respawn": respawn,
    "guard": guard,
    "comet": comet,
    "comet-in-new-sessions": comet_in_new_sessions,
    "bomb": bomb,
    "term-ignored": term_ignored,
    "result-and-stays": says_result_and_stays,
}

if __name__ == "__main__":
    WAYS[WAY]()
