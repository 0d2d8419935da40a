"""`stromboli service`: a unit file that says what was meant, whatever the names, and what is done with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from stromboli.cli.cli_errors import Usage
from stromboli.cli.main import app
from stromboli.cli.service_unit import NAME, unit_text

HOSTILE = [
    "a b",
    "100%",
    "%h",
    '"',
    "it's",
    "$HOME",
    "${HOME}",
    "\\",
    "\\n",
    "a\\",
    "é",
    "--",
    ";",
    "#x",
    "%%$$",
    "[x]",
]
PRINTABLE = st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" ")
COMMANDS = """#!/bin/sh
echo "$@" >> "$HOME/calls"
"""


def read_arguments(line: str) -> list[str]:
    """A line of ExecStart as systemd takes it apart: quotes, backslashes, `%%`, and `$$` behind the program."""
    arguments, position = list[str](), 0
    while position < len(line):
        assert line[position] == '"'
        position += 1
        text = ""
        while line[position] != '"':
            if line[position] == "\\":
                position += 1
                assert line[position] in '\\"'
            elif line[position] == "%" or (line[position] == "$" and arguments):
                assert line[position + 1] == line[position]
                position += 1
            text += line[position]
            position += 1
        arguments.append(text)
        position += 1
        assert line[position : position + 1] in ("", " ")
        position += 1
    return arguments


def exec_start(text: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    return read_arguments(line.removeprefix("ExecStart="))


@example(HOSTILE)
@given(st.lists(st.text(PRINTABLE, min_size=1, max_size=10).filter(lambda text: text == text.strip())))
def test_systemd_reads_the_arguments_that_were_meant(arguments: list[str]) -> None:
    command = ["/opt/a $b/python", *arguments]
    assert exec_start(unit_text(command, "/home/me", {"PATH": "/bin"})) == command


@pytest.mark.parametrize("text", ["a\nb", "", " a", "a\t", "a\x00", "\udcff"])
def test_what_cannot_stand_in_a_unit_is_refused(text: str) -> None:
    with pytest.raises(Usage, match="take another name"):
        unit_text(["/bin/python", text], "/", {"PATH": "/bin"})


@pytest.mark.programs("systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    folder = tmp_path / "a b%x$HOME\"'\\"
    folder.mkdir()
    unit = tmp_path / NAME
    unit.write_text(
        unit_text(
            [sys.executable, "-m", "stromboli", "up", *HOSTILE], str(folder), {"PATH": os.environ["PATH"]}
        )
    )
    done = subprocess.run(
        ("systemd-analyze", "--user", "verify", str(unit)),
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    complaints = [line for line in done.stderr.splitlines() if NAME in line]
    assert complaints == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a systemctl that notes what it is asked to do."""
    programs = tmp_path / "bin"
    programs.mkdir()
    systemctl = programs / "systemctl"
    systemctl.write_text(COMMANDS)
    systemctl.chmod(0o755)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["service", *arguments])
    return done.exit_code, done.output


def test_the_line_to_copy_is_quoted_for_the_shell(home: Path) -> None:
    status, output = run("install", "--data", str(home / "my data"))
    assert status == 0, output
    assert f"  export KUBECONFIG='{home}/my data/kubeconfig'\n" in output


def test_the_service_is_installed_shown_and_removed(home: Path) -> None:
    unit = home / ".config/systemd/user" / NAME
    assert run("status")[0] == 2
    status, output = run("install", "--nodes", "4x8cpu", "--real")
    assert status == 0, output
    data = home / ".local/share/stromboli"
    assert f"export KUBECONFIG={data}/kubeconfig" in output
    assert exec_start(unit.read_text()) == [
        *(sys.executable, "-m", "stromboli", "up", "--data", str(data), "--nodes", "4x8cpu", "--real")
    ]
    assert run("status") == (
        3,
        f"unit     {unit}\nruns     no; `systemctl --user start {NAME}` starts it,"
        f" `journalctl --user -u {NAME}` says why not\n",
    )
    assert run("remove")[0] == 0
    assert not unit.exists()
    assert (home / "calls").read_text().splitlines() == [
        "--user daemon-reload",
        f"--user enable {NAME}",
        f"--user restart {NAME}",
        f"--user disable --now {NAME}",
        "--user daemon-reload",
    ]


def test_options_that_up_does_not_know_are_told_before_anything_is_written(home: Path) -> None:
    status, output = run("install", "--nodez", "4")
    assert status == 2
    assert "--nodez" in output
    assert not (home / ".config").exists()


@pytest.mark.parametrize("command", ["print", "install"])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--nodes", "3xfoo"), "'foo' is no amount"),
        (("--switches", "2"), "say how many with --racks"),
        (("--run-time", "soon"), "--run-time 'soon': expected a time like 30s"),
        (("--start-delay", "5x"), "--start-delay '5x': expected a time like 30s"),
        *(
            (("--schedule-period", text), f"--schedule-period '{text}': expected a time such as 500ms")
            for text in ("0", "-1", "soon", "forever", "1s..2s", "exp(1s)")
        ),
        (("--preset", "none"), "none"),
        (("--policy", "missing.yaml"), "missing.yaml"),
        (("--plugins-dir", "missing"), "missing"),
        (("--job-plugins-dir", "missing"), "missing"),
    ],
)
def test_values_that_up_refuses_are_told_before_anything_is_written(
    home: Path, command: str, options: tuple[str, ...], told: str
) -> None:
    status, output = run(command, *options)
    assert (status, told in " ".join(output.split()), "[Unit]" in output) == (2, True, False), output
    assert not (home / ".config").exists()


def test_without_systemd_the_unit_is_written_and_the_rest_is_told(home: Path) -> None:
    (home / "bin/systemctl").write_text("#!/bin/sh\necho no bus >&2; exit 1\n")
    status, output = run("install", "--data", str(home / "mine"))
    assert status == 1
    assert "systemctl --user daemon-reload: no bus; where systemd runs for you" in output
    assert (home / ".config/systemd/user" / NAME).exists()


def test_a_place_that_cannot_be_written_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null")
    status, output = run("install")
    assert status == 2
    assert "/dev/null/systemd/user/stromboli.service: cannot be written: Not a directory" in output


def test_the_unit_can_be_printed(home: Path) -> None:
    status, output = run("print", "--data", "mine")
    assert status == 0
    assert exec_start(output)[-2:] == ["--data", str(Path.cwd() / "mine")]
    assert not (home / ".config").exists()


def test_the_service_offers_the_gpus_that_up_would_offer(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert 'Environment="CUDA_VISIBLE_DEVICES=0,1"\n' in run("print", "--real")[1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # none
    assert 'Environment="CUDA_VISIBLE_DEVICES="\n' in run("print", "--real")[1]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert "CUDA" not in run("print", "--real")[1]


def test_a_folder_is_written_without_detours(home: Path) -> None:
    status, output = run("print", "--data", "../mine")
    assert status == 0
    assert exec_start(output)[-2:] == ["--data", str(Path.cwd().parent / "mine")]


def test_an_empty_name_of_a_folder_is_refused(home: Path) -> None:
    for arguments in (["up"], ["down"], ["status"], ["service", "print"], ["service", "install"]):
        done = CliRunner().invoke(app, [*arguments, "--data", ""])
        assert (done.exit_code, "is empty; name a folder" in done.output) == (2, True), arguments


def test_a_folder_that_up_would_refuse_is_refused_before_anything_is_written(home: Path) -> None:
    (home / "www").mkdir()
    (home / "www/index.html").write_text("")
    status, output = run("install", "--data", str(home / "www"))
    assert status == 2
    assert "not empty (index.html)" in output.replace("\n", " ")
    assert not (home / ".config").exists()
