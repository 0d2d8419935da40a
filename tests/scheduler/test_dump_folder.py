"""Dumps lie in a folder of ours alone, and the oldest make room for new ones."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.scheduler import introspection
from stromboli.scheduler.introspection import (
    MAX_BYTES,
    MAX_DUMPS,
    Introspection,
    NotOurs,
    dump_folder,
    prune,
)
from stromboli.scheduler.thread_seam import Unavailable


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_is_made_for_us_alone(tmp_path: Path) -> None:
    folder = dump_folder(tmp_path)
    assert folder.parent == tmp_path
    assert mode(folder) == 0o700
    folder.chmod(0o755)
    assert dump_folder(tmp_path) == folder
    assert mode(folder) == 0o700, "also if somebody opened it to others"


def test_a_missing_folder_above_it_is_made_for_us_alone_too(tmp_path: Path) -> None:
    folder = dump_folder(tmp_path / "missing" / "dumps")
    assert (mode(folder), mode(folder.parent)) == (0o700, 0o700)


def test_a_folder_that_cannot_be_made_is_told_with_the_flag(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for parent in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=r"file.*; set --cache-dump-dir to a writable directory"):
            dump_folder(parent)


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_somebody_else_put_in_its_place_is_left_alone(tmp_path: Path, kind: str) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    place = tmp_path / f"stromboli-dumps-{os.geteuid()}"
    if kind == "link":
        place.symlink_to(theirs)
    else:
        place.touch()
    with pytest.raises(NotOurs, match="is not our own directory; remove it, or set --cache-dump-dir"):
        dump_folder(tmp_path)
    assert mode(theirs) == 0o755


def _write(folder: Path, number: int, size: int = 1) -> Path:
    path = folder / f"snapshot-{number:03}.json"
    with path.open("wb") as file:
        file.truncate(size)
    os.utime(path, (number, number))
    return path


def test_the_latest_dumps_are_kept_and_one_more_has_room(tmp_path: Path) -> None:
    paths = [_write(tmp_path, number) for number in range(MAX_DUMPS + 5)]
    other = tmp_path / "notes.txt"
    other.touch()
    prune(tmp_path)
    assert {path for path in paths if path.exists()} == set(paths[-MAX_DUMPS + 1 :])
    assert other.exists()


def test_large_dumps_make_room_earlier(tmp_path: Path) -> None:
    paths = [_write(tmp_path, number, MAX_BYTES // 3) for number in range(5)]
    prune(tmp_path)
    assert [path.exists() for path in paths] == [False, False, True, True, True]


def test_links_are_neither_followed_nor_deleted(tmp_path: Path) -> None:
    for number in range(MAX_DUMPS):
        _write(tmp_path, 100 + number)
    target = tmp_path / "target"
    target.touch()
    link = tmp_path / "snapshot-000.json"
    link.symlink_to(target)
    prune(tmp_path)
    assert link.is_symlink()
    assert target.exists()


class _Seam:
    """A cycle thread that answers at once."""

    async def result_from_cycle(self, call: Any) -> Any:
        return call()


def _dumping(folder: Path) -> Introspection:
    replica = SimpleNamespace(
        world=SimpleNamespace(cluster=SimpleNamespace(tasks={}, memory={})),
        scheduler=SimpleNamespace(engine=SimpleNamespace(policy=SimpleNamespace(source=""))),
        seam=_Seam(),
        watches=SimpleNamespace(reflectors=()),
    )
    options = SimpleNamespace(cache_dump_dir=folder, scheduler_name=("volcano",))
    metrics = SimpleNamespace(guard=TelemetryGuard())
    return Introspection(options, None, replica, None, metrics)  # type: ignore[arg-type]


def test_a_dump_is_for_our_eyes_and_old_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: object) -> dict[type, Any]:
        return {}

    monkeypatch.setattr(introspection, "discover", nothing)
    clock = iter(range(1000, 2000))
    monkeypatch.setattr(introspection.time, "time", lambda: float(next(clock)))
    shown = _dumping(tmp_path)

    async def dumps() -> list[Path]:
        return [Path(await shown.dump()) for _ in range(MAX_DUMPS + 3)]

    written = asyncio.run(dumps())
    assert {path.parent for path in written} == {dump_folder(tmp_path)}
    assert {path for path in written if path.exists()} == set(written[-MAX_DUMPS:])
    assert {mode(path) for path in written if path.exists()} == {0o600}


def test_a_dump_that_has_no_folder_says_so(tmp_path: Path) -> None:
    (tmp_path / f"stromboli-dumps-{os.geteuid()}").touch()
    with pytest.raises(Unavailable, match="--cache-dump-dir"):
        asyncio.run(_dumping(tmp_path).dump())
