import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from longwatch.kernel import files
from longwatch.kernel.errors import PathError


@pytest.mark.guarantee("K9")
def test_remove_takes_a_tree_and_nothing_that_its_links_lead_to(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    tree = root / "runs" / "one"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "out").symlink_to(outside)
    (tree / "file").symlink_to(outside / "precious")
    os.mkfifo(tree / "sub" / "fifo")
    files.remove_recorded(tree, root)
    assert not tree.exists()
    assert (root / "runs").is_dir()
    assert (outside / "precious").read_bytes() == b"x"
    files.remove_recorded(tree, root)


@pytest.mark.guarantee("K9")
def test_remove_refuses_the_root_what_is_outside_and_what_a_link_leads_to(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "real" / "kept").write_bytes(b"x")
    (root / "link").symlink_to("real")
    (tmp_path / "sibling").mkdir()
    for path in (
        root,
        root / "real" / "..",
        tmp_path,
        tmp_path / "sibling",
        root / ".." / "sibling",
        root / "link",
        root / "link" / "kept",
        Path("/"),
    ):
        with pytest.raises(PathError, match="removed"):
            files.remove_recorded(path, root)
    assert (root / "real" / "kept").read_bytes() == b"x"
    assert (tmp_path / "sibling").is_dir()


@pytest.mark.guarantee("K9")
def test_remove_takes_trees_without_permissions_of_any_depth(tmp_path: Path) -> None:
    """For root every permission holds, so the program runs without root's rights, in a user namespace."""
    program = """
        import os, sys
        from pathlib import Path
        from longwatch.kernel import files
        root = Path(sys.argv[1])
        tree = root / "tree"
        tree.mkdir()
        os.chdir(tree)
        for _ in range(1500):
            Path("file").touch(mode=0)
            os.mkdir("d" * 50)
            above = os.open(".", os.O_RDONLY)
            os.chdir("d" * 50)
            os.fchmod(above, 0)
            os.close(above)
        os.chdir(root)
        try:
            os.listdir(tree)
        except PermissionError:
            files.remove_recorded(tree, root)
            print("gone" if not tree.exists() else "still there")
    """
    done = subprocess.run(
        [
            "unshare",
            "-U",
            "--map-user=1000",
            "--map-group=1000",
            sys.executable,
            "-c",
            textwrap.dedent(program),
            tmp_path,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "gone\n", done.stderr


@pytest.mark.guarantee("K9")
def test_remove_names_what_it_cannot_remove(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "tree" / "mount").mkdir(parents=True)
    program = """
        import sys
        from pathlib import Path
        from longwatch.kernel import files
        from longwatch.kernel.errors import LongwatchError
        try:
            files.remove_recorded(Path(sys.argv[1]).parent, Path(sys.argv[1]).parent.parent)
        except LongwatchError as error:
            assert "mounted" in str(error), error
            print("held")
    """
    command = 'mount -t tmpfs none "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        [
            "unshare",
            "-Urm",
            "sh",
            "-c",
            command,
            "sh",
            root / "tree" / "mount",
            sys.executable,
            textwrap.dedent(program),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "held\n", done.stderr
