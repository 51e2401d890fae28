"""Opening and closing a data folder."""

import asyncio
import sqlite3
import sys
from pathlib import Path

import pytest

from perdure.errors import Fenced, NewerSchema, StorageError, StorageInUse
from perdure.storage.contract import LoadAgent, LoadPath, LoadValue, PutValue
from perdure.storage.sqlite import SqliteStore
from perdure.storage.sqlite.files import OpenFiles
from tests.storage.samples import message, turn, write

pytestmark = pytest.mark.anyio

HOLD = Path(__file__).parent / "processes" / "hold.py"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_what_was_written_is_there_after_closing_and_opening(folder: Path) -> None:
    store = await SqliteStore.open(folder)
    await write(store, "a", message(0), message(1, 0), turn("t"), PutValue("n", "k", "1"))
    record, path = await store.read(LoadAgent("a")), await store.read(LoadPath("a"))
    await store.close()

    store = await SqliteStore.open(str(folder))
    assert await store.read(LoadAgent("a")) == record
    assert await store.read(LoadPath("a")) == path
    assert await store.read(LoadValue("a", "n", "k")) == "1"
    await store.close()


async def test_the_folder_is_created_with_those_above_it(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "deep" / "in ü %20?#" / "data")
    await write(store, "a", message(0))
    assert len(await store.read(LoadPath("a"))) == 1
    assert len(await store.read(LoadPath("a"))) == 1
    assert store.path == tmp_path / "deep" / "in ü %20?#" / "data" / "perdure.db"
    await store.close()


async def test_closing_finishes_what_was_handed_over(folder: Path) -> None:
    store = await SqliteStore.open(folder)
    commits = [store.write("a", store.epoch, [message(pos)]) for pos in range(100)]
    path, _ = await asyncio.gather(store.read(LoadPath("a")), store.close())
    assert isinstance(path, list)
    assert all(commit.done() and commit.exception() is None for commit in commits)

    store = await SqliteStore.open(folder)
    assert (await store.read(LoadAgent("a"))).next_pos == 100
    await store.close()


async def test_closing_leaves_one_database_file_without_a_log(folder: Path) -> None:
    store = await SqliteStore.open(folder)
    await write(store, "a", message(0))
    await store.read(LoadPath("a"))
    await store.close()
    assert names_in(folder) == ["perdure.db", "perdure.lock"]


async def test_a_closed_store_says_so(folder: Path) -> None:
    store = await SqliteStore.open(folder)
    await store.close()
    await store.close()
    with pytest.raises(StorageError, match=r"'a' was not stored: the store \(.*\) is closed"):
        await store.write("a", store.epoch, [message(0)])
    with pytest.raises(StorageError, match=r"LoadAgent could not be answered: the store \(.*\) is closed"):
        await store.read(LoadAgent("a"))


async def test_the_epoch_counts_the_openings_and_fences_the_earlier_ones(folder: Path) -> None:
    for epoch in (1, 2, 3):
        store = await SqliteStore.open(folder)
        assert store.epoch == epoch
        if epoch > 1:
            with pytest.raises(Fenced):
                await store.write("a", epoch - 1, [message(0)])
        await store.close()


async def test_reading_an_agent_that_was_never_written_creates_nothing(folder: Path) -> None:
    store = await SqliteStore.open(folder)
    await store.read(LoadAgent("a"))
    await store.read(LoadPath("a"))
    await store.read(LoadValue("a", "n", "k"))
    await store.write("a", store.epoch, [])
    await store.close()
    connection = sqlite3.connect(folder / "perdure.db")
    assert connection.execute("select count(*) from agent").fetchone() == (0,)
    connection.close()


async def test_a_second_store_in_the_same_process_is_refused(folder: Path, store: SqliteStore) -> None:
    with pytest.raises(StorageInUse):
        await SqliteStore.open(folder)
    await write(store, "a", message(0))


async def test_a_folder_is_in_use_until_its_process_has_ended(folder: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HOLD), str(folder), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"open\n"
    with pytest.raises(StorageInUse) as raised:
        await SqliteStore.open(folder)
    assert raised.value.folder == str(folder)

    process.kill()
    await process.communicate()
    store = await SqliteStore.open(folder)
    assert store.epoch == 2
    await store.close()


async def test_a_file_of_a_newer_version_is_refused_and_left_alone(folder: Path) -> None:
    await (await SqliteStore.open(folder)).close()
    path = folder / "perdure.db"
    connection = sqlite3.connect(path)
    connection.execute("pragma user_version = 999")
    connection.close()
    before = path.read_bytes()

    for _ in range(2):  # the second time shows that the first gave the folder free
        with pytest.raises(NewerSchema) as raised:
            await SqliteStore.open(folder)
        assert (raised.value.path, raised.value.found) == (str(path), 999)
    assert path.read_bytes() == before


@pytest.mark.parametrize("keep", [0, 100, 4096], ids=["all of it", "all but the header", "all but the first page"])
async def test_a_damaged_file_is_named_with_what_to_do(folder: Path, keep: int) -> None:
    await (await SqliteStore.open(folder)).close()
    path = folder / "perdure.db"
    whole = path.read_bytes()
    path.write_bytes(whole[:keep] + b"\xa5" * (len(whole) - keep))

    for _ in range(2):
        with pytest.raises(StorageError, match=r"The file is damaged\. Move it away") as raised:
            await SqliteStore.open(folder)
        assert str(path) in str(raised.value)


async def test_damage_met_while_reading_or_writing_is_named_and_the_rest_goes_on(folder: Path) -> None:
    store = await SqliteStore.open(folder)
    await write(store, "a", *[message(pos, body="x" * 900) for pos in range(100)])
    await write(store, "b", PutValue("n", "k", "1"))
    await store.close()
    path = folder / "perdure.db"
    connection = sqlite3.connect(path)
    (root,) = connection.execute("select rootpage from sqlite_schema where name = 'message'").fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xa5" * 4096)

    store = await SqliteStore.open(folder)
    with pytest.raises(StorageError, match=r"LoadPath could not be answered: .* The file is damaged"):
        await store.read(LoadPath("a"))
    with pytest.raises(StorageError, match=r"'a' was not stored: .* The file is damaged"):
        await write(store, "a", message(100))
    await write(store, "b", PutValue("n", "k", "2"))
    assert await store.read(LoadValue("b", "n", "k")) == "2"
    await store.close()


async def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match=r"The data folder .*/file/data cannot be created"):
        await SqliteStore.open(tmp_path / "file" / "data")


async def test_a_database_that_is_a_folder_is_named(folder: Path) -> None:
    (folder / "perdure.db").mkdir(parents=True)
    with pytest.raises(StorageError, match="The store cannot be opened: unable to open database file"):
        await SqliteStore.open(folder)


async def test_a_caller_who_gives_up_while_opening_leaves_the_folder_free(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    opening = asyncio.ensure_future(SqliteStore.open(folder))
    loop.call_soon(opening.cancel)
    with pytest.raises(asyncio.CancelledError):
        await opening
    await loop.shutdown_default_executor()  # hence the opening has run to its end
    files = OpenFiles(folder)
    assert files.epoch == 2
    files.close()


async def test_a_temporary_store_is_gone_after_closing() -> None:
    store = await SqliteStore.temporary()
    await write(store, "a", message(0))
    assert len(await store.read(LoadPath("a"))) == 1
    folder = store.path.parent
    assert folder.exists()
    await store.close()
    assert not folder.exists()
