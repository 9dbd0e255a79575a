"""Removes a folder that an adversary filled: any depth, any permissions, links that lead elsewhere.

Everything goes through open folders, so that no name is looked up twice on its way.
"""

import os
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_HANDLE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(parent: int, name: str) -> None:
    """Remove the folder `name` in the open folder `parent` with everything in it; links are removed, not followed.

    A crash on the way leaves a smaller folder that a repeat removes.

    Raises:
        OSError: something in it cannot be removed: a mount, a foreign owner, an immutable file.
    """
    top = _unlocked(parent, name)
    try:
        _remove_content(top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _remove_content(top: int) -> None:
    """Empty a folder. Deeper folders are first moved up into it, so depth costs neither stack nor descriptors."""
    waiting = _unlink_files(top)
    token = os.urandom(8).hex()
    moved = 0
    while waiting:
        name = waiting.pop()
        folder = _unlocked(top, name)
        try:
            for child in _unlink_files(folder):
                os.close(_unlocked(folder, child))
                moved += 1
                waiting.append(f"{token}-{moved}")
                os.rename(child, waiting[-1], src_dir_fd=folder, dst_dir_fd=top)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=top)


def _unlink_files(folder: int) -> list[str]:
    """Unlink everything in the folder that is no folder itself, and return the names of those that are."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]


def _unlocked(parent: int, name: str) -> int:
    """Open a folder for removal after giving its owner all rights on exactly this folder, whatever its mode was."""
    handle = os.open(name, _HANDLE, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(0o700)
        return os.open(".", _FOLDER, dir_fd=handle)
    finally:
        os.close(handle)
