"""What a workbench shows of this machine besides the checkout."""

from pathlib import Path

import pytest
from tests.support import repositories

from longwatch.kernel.watch import Watch
from longwatch.migrate.bench import bench_of
from longwatch.migrate.place import Place
from longwatch.migrate.settings import MigrateSettings, Repository, SandboxSettings, WorkerSettings


@pytest.mark.guarantee("M15")
def test_a_shared_virtual_environment_brings_the_python_that_it_stands_on(tmp_path: Path) -> None:
    root, python = tmp_path / "repo", tmp_path / "pythons/3.11/bin/python3.11"
    repositories.new_repository(root)
    python.parent.mkdir(parents=True)
    python.write_bytes(b"")
    python.chmod(0o755)
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to(python)
    (root / ".venv/pyvenv.cfg").write_text(f"home = {python.parent}\n")
    (root / "node_modules").mkdir()
    settings = MigrateSettings(
        kind="migrate",
        repository=Repository(branch="main"),
        worker=WorkerSettings(adapter="command", argv=("x",)),
        sandbox=SandboxSettings(share=(".venv", "node_modules")),
    )

    bench = bench_of(Place(Watch(root), settings), ())

    assert {root / ".venv", root / "node_modules", tmp_path / "pythons/3.11"} <= set(bench.expose)
    assert bench.share == ((root / ".venv", ".venv"), (root / "node_modules", "node_modules"))
