"""A new project: it is whole, its test passes, and it runs."""

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from perdure.cli import main
from tests.cli.commands import command


def test_a_new_project_passes_its_own_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", str(tmp_path / "my-agent")]) == 0
    assert "perdure dev app.py" in capsys.readouterr().out
    folder = tmp_path / "my-agent"
    assert {path.name for path in folder.iterdir()} == {
        ".gitignore",
        "README.md",
        "app.py",
        "pyproject.toml",
        "test_app.py",
    }
    for path in folder.iterdir():
        assert "{{" not in path.read_text("utf-8")
    assert 'name = "my-agent"' in (folder / "pyproject.toml").read_text("utf-8")
    pytest_run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert pytest_run.returncode == 0, pytest_run.stdout
    assert "1 passed" in pytest_run.stdout


@pytest.mark.anyio
async def test_a_new_project_is_served(tmp_path: Path) -> None:
    assert main(["new", str(tmp_path / "it")]) == 0
    async with command("serve", "app.py", "--port", "0", cwd=tmp_path / "it") as running:
        port = await running.port()
        async with httpx2.AsyncClient() as client:
            response = await client.get(f"http://127.0.0.1:{port}/agents/assistant/room/get-messages")
        assert response.json() == []
        assert await running.stop() == 0
    assert (tmp_path / "it" / ".perdure" / "perdure.db").is_file()


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    assert main(["new", str(tmp_path)]) == 0
    assert (tmp_path / "app.py").is_file()


def test_nothing_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "app.py").write_text("precious")
    (tmp_path / "file").write_text("precious")
    for name in ("mine", "file"):
        assert main(["new", str(tmp_path / name)]) == 1
        assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "mine" / "app.py").read_text() == "precious"
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("name", ["my agent", "-x", "ä", "a$b", "x-", ".hidden"])
def test_a_name_that_is_no_projects_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["new", "--", str(tmp_path / name)]) == 1
    assert "cannot be a project's name" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["new", str(tmp_path / "file" / "agent")]) == 1
    assert "cannot be written" in capsys.readouterr().err
