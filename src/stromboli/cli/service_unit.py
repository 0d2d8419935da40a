"""The unit file that lets systemd run `stromboli up` for a user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stromboli.cli.cli_errors import Usage
from stromboli.embedded.running_clusters import UNIT_VARIABLE

NAME = "stromboli.service"

_TEXT = """\
# Written by `stromboli service install`; `stromboli service remove` takes it away.
[Unit]
Description=Stromboli, a cluster on this machine
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
ExecStart={command}
WorkingDirectory={folder}
{variables}
Restart=on-failure
RestartSec=2
# A wrong option or a folder that is in use does not get better by itself.
RestartPreventExitStatus=2
TimeoutStartSec=180
TimeoutStopSec=90
# Asks the cluster alone to stop, which ends the processes of pods; what is left after that is killed.
KillMode=mixed
# Lets it limit what pods use.
Delegate=yes
UMask=0077

[Install]
WantedBy=default.target
"""


def unit_text(command: Sequence[str], folder: str, variables: Mapping[str, str]) -> str:
    """A unit that runs a command in a folder, with these variables."""
    lines = [
        f"Environment={_quoted(f'{name}={value}', variables=False)}"
        for name, value in (*variables.items(), (UNIT_VARIABLE, NAME))
    ]
    return _TEXT.format(
        command=" ".join((_quoted(command[0], variables=False), *map(_quoted, command[1:]))),
        folder=_checked(folder).replace("%", "%%"),
        variables="\n".join(lines),
    )


def _quoted(argument: str, variables: bool = True) -> str:
    """As an argument that systemd takes for itself; `variables` says whether it would replace `$NAME` here."""
    text = _checked(argument).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text.replace("$", "$$") if variables else text}"'


def _checked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Usage(f"{text!r}: is not UTF-8, and cannot stand in a unit file; take another name") from None
    if not text or text != text.strip() or not text.isprintable():
        raise Usage(
            f"{text!r}: is empty, begins or ends with a blank, or has characters that cannot stand in a unit file;"
            " take another name"
        )
    return text
