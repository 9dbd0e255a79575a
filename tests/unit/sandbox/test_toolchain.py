from pathlib import Path

import pytest

from longwatch.sandbox.toolchain import find, prefixes


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def program(path: Path, text: str = "\x7fELF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def link(path: Path, target: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def path_of(*folders: Path) -> str:
    return ":".join([*map(str, folders), "/usr/bin", "/bin"])


@pytest.mark.guarantee("M15")
def test_tools_of_the_system_need_nothing() -> None:
    assert prefixes(["sh", "env"], "/usr/bin:/bin") == ()


def test_a_missing_program_is_left_out(home: Path) -> None:
    assert prefixes(["no-such-program"], path_of()) == ()


def test_a_node_installation(home: Path) -> None:
    node = program(home / ".nvm/versions/node/v20/bin/node")
    npm = home / ".nvm/versions/node/v20/lib/node_modules/npm/bin/npm-cli.js"
    program(npm, "#!/usr/bin/env node\n")
    link(node.with_name("npm"), Path("../lib/node_modules/npm/bin/npm-cli.js"))
    assert prefixes(["npm"], path_of(node.parent)) == (home / ".nvm/versions/node/v20",)


def test_a_pyenv_shim_needs_the_pyenv_root(home: Path) -> None:
    shim = program(home / ".pyenv/shims/python3", "#!/usr/bin/env bash\n")
    tools = find(["python3"], path_of(shim.parent, home / ".unrelated"))
    assert tools.folders == (home / ".pyenv",)
    assert tools.path == path_of(shim.parent)


def test_a_virtual_environment_needs_its_base(home: Path) -> None:
    base = program(home / ".pyenv/versions/3.11/bin/python3.11")
    python = link(home / "project/.venv/bin/python", base)
    (home / "project/.venv/pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\n"
    )
    pytest_script = program(python.with_name("pytest"), f"#!{python}\n")
    expected = (home / ".pyenv/versions/3.11", home / "project/.venv")
    assert prefixes([str(python)], path_of()) == expected
    assert prefixes(["pytest"], path_of(pytest_script.parent)) == expected


def test_a_virtual_environment_of_copies_needs_its_base_too(home: Path) -> None:
    base = program(home / ".pyenv/versions/3.11/bin/python3.11")
    python = program(home / "venv/bin/python")
    (home / "venv/pyvenv.cfg").write_text(f"home = {base.parent}\n")
    assert home / ".pyenv/versions/3.11" in prefixes([str(python)], path_of())


@pytest.mark.guarantee("M15")
def test_rust_is_shown_without_its_credentials(home: Path) -> None:
    cargo = link(home / ".cargo/bin/cargo", Path("rustup"))
    program(home / ".cargo/bin/rustup")
    (home / ".cargo/registry").mkdir()
    (home / ".cargo/credentials.toml").touch()
    (home / ".rustup").mkdir()
    tools = find(["cargo"], path_of(cargo.parent))
    assert tools.folders == (home / ".cargo/bin", home / ".cargo/registry", home / ".rustup")
    assert tools.environment == {"RUSTUP_HOME": str(home / ".rustup")}


@pytest.mark.guarantee("M15")
@pytest.mark.parametrize("place", ["bin", ".local/bin", "tool"])
def test_the_home_is_never_shown(home: Path, place: str) -> None:
    tool = program(home / place / "mine")
    shown = prefixes(["mine"], path_of(tool.parent))
    assert shown == (tool.parent,)


@pytest.mark.guarantee("M15")
def test_a_program_that_lies_in_the_home_itself_is_not_shown(home: Path) -> None:
    program(home / "mine")
    assert prefixes(["mine"], path_of(home)) == ()


@pytest.mark.guarantee("M15")
def test_a_folder_with_credentials_is_narrowed_to_its_programs(home: Path) -> None:
    tool = program(home / ".agent/bin/agent")
    (home / ".agent/auth.json").touch()
    assert prefixes(["agent"], path_of(tool.parent)) == (tool.parent,)


def test_a_link_in_a_system_folder_is_followed(home: Path, tmp_path: Path) -> None:
    target = program(home / ".local/share/agent/versions/2.1")
    agent = link(tmp_path / "bin/agent", target)
    assert home / ".local/share/agent/versions" in prefixes(["agent"], path_of(agent.parent))


def test_links_in_a_circle_end(home: Path) -> None:
    link(home / "bin/a", Path("b"))
    link(home / "bin/b", Path("a"))
    assert prefixes(["a"], path_of(home / "bin")) == ()


def test_a_script_that_names_itself_as_interpreter_ends(home: Path) -> None:
    script = home / "tool/bin/loop"
    program(script, f"#!{script}\n")
    assert prefixes([str(script)], path_of()) == (home / "tool",)
