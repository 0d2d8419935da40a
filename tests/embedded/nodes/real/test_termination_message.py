"""The last words of containers."""

import os

import pytest

from stromboli.embedded.nodes.real.container_logs import LogFile
from stromboli.embedded.nodes.real.termination_message import (
    MAX_LOG_BYTES,
    MAX_MESSAGE,
    clear_message,
    message_path,
    read_message,
)

FALLBACK = {"terminationMessagePolicy": "FallbackToLogsOnError"}


def message(folder, spec, failed=True, containers=1):
    return read_message(spec, folder / "message", folder / "0.log", failed, containers)


def logged(folder, text):
    log = LogFile(folder / "0.log", lambda: 0.0)
    log.write(text)
    log.close()


def test_a_message_is_the_end_of_what_was_written(tmp_path):
    (tmp_path / "message").write_text("x" * MAX_MESSAGE + "the end")
    assert message(tmp_path, {}) == "x" * (MAX_MESSAGE - 7) + "the end"
    assert len(message(tmp_path, {}, containers=12)) == 1024


@pytest.mark.parametrize(
    ("spec", "failed", "written", "expected"),
    [
        (FALLBACK, True, "", "one\ntwo\n"),
        (FALLBACK, True, "said", "said"),
        (FALLBACK, False, "", ""),
        ({}, True, "", ""),
    ],
)
def test_without_a_message_the_log_says_why_a_container_failed(tmp_path, spec, failed, written, expected):
    logged(tmp_path, b"one\ntwo\n")
    (tmp_path / "message").write_text(written)
    assert message(tmp_path, spec, failed) == expected


def test_of_the_log_only_the_end_is_taken(tmp_path):
    logged(tmp_path, b"".join(b"%d\n" % number for number in range(200)))
    assert message(tmp_path, FALLBACK).split() == [str(number) for number in range(120, 200)]
    logged(tmp_path, b"y" * 10_000 + b"\n")
    assert message(tmp_path, FALLBACK) == "y" * (MAX_LOG_BYTES - 1) + "\n"


def test_what_is_no_file_is_no_message(tmp_path):
    assert message(tmp_path, {}) == ""
    os.mkfifo(tmp_path / "message")
    assert message(tmp_path, {}) == ""
    (tmp_path / "message").unlink()
    (tmp_path / "message").mkdir()
    assert message(tmp_path, {}) == ""
    clear_message(tmp_path / "message")
    assert (tmp_path / "message").is_dir()


def test_a_container_finds_the_file_for_its_message_empty(tmp_path):
    path = tmp_path / "dev" / "termination-log"
    clear_message(path)
    path.write_text("of the last run")
    clear_message(path)
    assert path.read_text() == ""
    assert message_path({}) == "/dev/termination-log"
    assert message_path({"terminationMessagePath": "/tmp/m"}) == "/tmp/m"
