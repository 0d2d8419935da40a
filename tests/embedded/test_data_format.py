"""Which data folders a release goes on with, and which it leaves alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from stromboli import __version__
from stromboli.embedded.data_files import DataError
from stromboli.embedded.data_format import FORMAT, NAME, check_format, mark_format
from tests.embedded.api_requests import running


def test_a_new_folder_is_marked_and_opened_again(tmp_path: Path) -> None:
    async def start() -> None:
        async with running(tmp_path):
            pass

    for _ in range(2):
        asyncio.run(start())
        assert json.loads((tmp_path / NAME).read_text()) == {"format": FORMAT, "release": __version__}


def test_a_folder_of_an_earlier_release_is_adopted(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text('{"format": 1, "release": "0.0.1", "unknown": true}')
    assert not check_format(tmp_path)
    mark_format(tmp_path)
    assert check_format(tmp_path)
    assert json.loads((tmp_path / NAME).read_text())["format"] == FORMAT


def test_a_folder_of_a_later_format_is_refused_and_not_touched(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(f'{{"format": {FORMAT + 1}, "release": "9.9.9"}}')

    async def start() -> None:
        async with running(tmp_path):
            pass

    with pytest.raises(DataError) as refusal:
        asyncio.run(start())
    assert f"stromboli 9.9.9 used it last, which writes format {FORMAT + 1}" in str(refusal.value)
    assert "Install that release (make install in a checkout of it)" in str(refusal.value)
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format": "two"}', "x" * 10_000])
def test_a_mark_that_cannot_be_read_is_told_with_the_way_out(tmp_path: Path, content: str) -> None:
    (tmp_path / NAME).write_text(content)
    with pytest.raises(DataError, match=r"format\.json: cannot be read: .*; delete it if"):
        check_format(tmp_path)
