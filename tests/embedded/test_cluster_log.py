"""The log of a cluster in its data folder."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from stromboli.embedded import cluster_log
from stromboli.embedded.cluster_log import NAME, keep_log
from stromboli.embedded.data_files import DataError


@pytest.fixture
def loggers() -> Iterator[list[logging.Logger]]:
    """Those that are changed, which are put back."""
    changed = [logging.getLogger("stromboli"), logging.getLogger()]
    before = [(list(each.handlers), each.level, each.propagate) for each in changed]
    yield changed
    for each, (handlers, level, propagate) in zip(changed, before, strict=True):
        for handler in each.handlers:
            if handler not in handlers:
                handler.close()
        each.handlers[:], each.propagate = handlers, propagate
        each.setLevel(level)


def test_the_log_stays_within_its_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loggers: list[logging.Logger]
) -> None:
    monkeypatch.setattr(cluster_log, "LARGEST_LOG", 1000)
    loggers[0].setLevel(logging.INFO)
    keep_log(tmp_path)
    for number in range(100):
        logging.getLogger("stromboli.some").info("line\n%d", number)
    logging.getLogger("another").warning("as well")
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [NAME, f"{NAME}.1", f"{NAME}.2"]
    assert all(file.stat().st_size <= 1000 for file in files)
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    last = files[0].read_text().splitlines()
    assert '"line\\n99"' in last[-2]
    assert 'message="as well"' in last[-1]


def test_what_the_disk_does_not_take_is_lost_and_nothing_else(
    tmp_path: Path, loggers: list[logging.Logger]
) -> None:
    keep_log(tmp_path)
    (handler,) = (each for each in loggers[0].handlers if isinstance(each, logging.FileHandler))
    handler.stream.close()
    log = logging.getLogger("stromboli.some")
    log.warning("lost")
    handler.stream = None  # type: ignore[assignment]
    log.warning("written")
    assert "written" in (tmp_path / NAME).read_text()


def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path, loggers: list[logging.Logger]) -> None:
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="cannot be written"):
        keep_log(tmp_path)
    assert not (tmp_path / "elsewhere").exists()
