"""Which changes of files are seen."""

import os
from pathlib import Path

from perdure.cli.watching import Watch


def test_python_files_that_change_come_or_go_are_named(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    for name in ("a.py", "b.py", "pkg/c.py"):
        (tmp_path / name).write_text("1")
    watch = Watch(tmp_path)
    assert watch.changes() == []
    (tmp_path / "a.py").write_text("22")
    os.utime(tmp_path / "pkg" / "c.py", ns=(1, 1))
    (tmp_path / "b.py").unlink()
    (tmp_path / "d.py").write_text("1")
    assert watch.changes() == ["a.py", "b.py", "d.py", os.path.join("pkg", "c.py")]
    assert watch.changes() == []


def test_other_files_and_installed_packages_do_not_count(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    for name in (".venv/x.py", "__pycache__/x.py", "node_modules/x.py", "lib/site-packages/x.py", "data.db", "x.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    assert watch.changes() == []
