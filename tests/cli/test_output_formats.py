"""JSON and YAML on a terminal: nothing that it could take for a command, and the same data."""

from __future__ import annotations

import json

import pytest
import yaml

from stromboli.cli.output import Format, write_as

HOSTILE = {"name": "\x1b[2J\x07\x9b31m\x7f", "turned": "\u202egnp.exe\u2066", "plain": "Müller"}


@pytest.mark.parametrize(("format", "read"), [(Format.JSON, json.loads), (Format.YAML, yaml.safe_load)])
def test_a_terminal_is_sent_ascii_alone(format, read, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    write_as(format, HOSTILE)
    text = capsys.readouterr().out
    assert text.isascii()
    assert not set(text) & set("\x1b\x07\x7f")
    assert read(text) == HOSTILE


@pytest.mark.parametrize(("format", "read"), [(Format.JSON, json.loads), (Format.YAML, yaml.safe_load)])
def test_elsewhere_letters_stay_letters(format, read, capsys) -> None:
    write_as(format, HOSTILE)
    text = capsys.readouterr().out
    assert "Müller" in text
    assert "\x1b" not in text
    assert read(text) == HOSTILE
