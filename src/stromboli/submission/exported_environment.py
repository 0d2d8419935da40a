"""The variables of the user that `stromboli submit` passes to a job, chosen as `sbatch --export` chooses them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from stromboli.submission.bad_request import BadRequest, is_text
from stromboli.submission.pod_variables import RANKS
from stromboli.submission.run_settings import MAX_ENV, MAX_ENV_BYTES

MAX_SHOWN = 10
"""Names of variables in a note."""
_ENTRY = re.compile(r"""(?:[^,"']|"[^"]*"|'[^']*'|["'])+""")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OF_PROCESS = re.compile(
    rf"(?:SLURM\w*|STROMBOLI\w*|{'|'.join(RANKS)}|(?:CUDA|NVIDIA)_VISIBLE_DEVICES|HOSTNAME|PWD|OLDPWD|SHLVL|_)"
)
"""Variables that each pod has of its own."""
_OF_MACHINE = re.compile(
    r"PATH|MANPATH|HOME|SHELL|TERM|LOGNAME|TMPDIR|DISPLAY|XAUTHORITY|KUBECONFIG|VIRTUAL_ENV"
    r"|(?:LD|DYLD|PYTHON|CONDA|XDG|SSH|DBUS|KUBERNETES)_?\w*"
)
"""Variables that name files and programs of one machine, which an image does not have."""
_CREDENTIAL = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|(?:API|ACCESS|PRIVATE|ACCOUNT|AUTH|SESSION)_?KEY", re.I
)
_CREDENTIAL_IN_URL = re.compile(r"://[^/@\s]*:[^/@\s]+@")


class Exported(NamedTuple):
    """The variables, and a sentence for each group of variables that is left out."""

    variables: dict[str, str]
    notes: list[str]


def exported(export: str, environment: Mapping[str, str], on_this_machine: bool) -> Exported:
    """`ALL`, `NONE`, `NIL`, or names with or without values; of entries for one name the last wins.

    On another cluster `ALL` leaves out what belongs to this machine, and credentials, since read access to a Job shows
    its variables. Variables that are named are passed in any case.
    """
    variables: dict[str, str] = {}
    notes = []
    withheld: list[str] = []
    for entry in _ENTRY.findall(export):
        name, equals, value = entry.strip().partition("=")
        if name.upper() == "ALL" and not equals:
            for each, text in environment.items():
                if not _is_portable(each, text, on_this_machine):
                    continue
                if not on_this_machine and (_CREDENTIAL.search(each) or _CREDENTIAL_IN_URL.search(text)):
                    withheld.append(each)
                else:
                    variables[each] = text
        elif name.upper() in ("NONE", "NIL") and not equals:
            continue
        elif not _VARIABLE.fullmatch(name):
            raise BadRequest("--export", entry, "must be ALL, NONE, NAME or NAME=VALUE, separated by commas")
        elif not equals and name not in environment:
            notes.append(f"--export {name}: the variable is not set; write {name}=VALUE to set it")
        else:
            variables[name] = _text(name, _unquoted(value) if equals else environment[name])
    if withheld := sorted(set(withheld) - set(variables)):
        shown = ",".join(withheld[:MAX_SHOWN])
        more = f" and {len(withheld) - MAX_SHOWN} more" if len(withheld) > MAX_SHOWN else ""
        notes.append(
            f"--export ALL leaves out what looks like credentials ({shown}{more}), since read access to the Job"
            " shows them; name a variable to pass it, or use a Secret in a manifest"
        )
    size = sum(len(name) + len(value.encode(errors="replace")) for name, value in variables.items())
    if len(variables) > MAX_ENV or size > MAX_ENV_BYTES:
        raise BadRequest(
            "--export",
            export,
            f"{len(variables)} variables of {size} bytes; a job has at most {MAX_ENV} of {MAX_ENV_BYTES} bytes;"
            " name those that it needs (--export=NAME,...), or use --export=NONE",
        )
    return Exported(variables, notes)


def _is_portable(name: str, value: str, on_this_machine: bool) -> bool:
    """Whether `ALL` passes a variable; functions of bash and bytes that are not text cannot be passed."""
    if not _VARIABLE.fullmatch(name) or _OF_PROCESS.fullmatch(name) or not is_text(value):
        return False
    return on_this_machine or not _OF_MACHINE.fullmatch(name)


def _text(name: str, value: str) -> str:
    if not is_text(value):
        raise BadRequest("--export", name, f"the value is not text in UTF-8; write {name}=VALUE")
    return value


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
