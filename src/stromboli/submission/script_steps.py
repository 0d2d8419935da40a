"""What a shell script of several pods asks for that works on Slurm alone, where the script runs once.

Here the script runs in every pod. `srun` on chosen nodes, several steps, `mpirun`, and random values that tasks must
share are reported. A script that cannot be read is accepted: `srun` in the pod refuses the same when it is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import NamedTuple

from stromboli.submission.job_request import RUN_ONCE
from stromboli.submission.pod_variables import RANKS
from stromboli.submission.shell_reader import ASSIGNMENT, PROCESS, ShellReader, Unreadable, Word
from stromboli.submission.slurm_options import SRUN_TAKES_VALUE

_SHELL = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?)?(?:ba|da|a|k|z)?sh(?:\s|$)")
_SBATCH = re.compile(r"^#SBATCH\s", re.MULTILINE)
_DIFFERING = {
    "random": re.compile(
        r"\bS?RANDOM\b|(?<![^\s|;&(`])(?:shuf|uuidgen)\b|/dev/u?random\b|/random/uuid\b|\bopenssl\s+rand\b"
        r"|\brandom\.(?:rand|choice|sample|getrandbits|uniform)|\bgetsockname\b|\bsrand\(\)"
    ),
    "time": re.compile(
        r"(?<![^\s|;&(`])date\b(?!\s+(?:-\S{1,99}\s+){0,9}[\"']?\+(?![^\"'`)\n]{0,99}%[sSNTcrXMHRIlk]))"
    ),
    "host": re.compile(r"(?<![^\s|;&(`])(?<!show )hostname\b"),
}
"""Commands whose output differs between pods, by what it is: `date` only with the time of day."""
_PREFIXES = frozenset(("exec", "command", "nohup", "env", "timeout", "nice", "stdbuf"))
_LAUNCHERS = frozenset(("srun", "torchrun", "accelerate", "deepspeed"))
"""Commands whose tasks in all pods are given the same arguments."""
_PYTHON = re.compile(r"python[0-9.]*")
"""Each pod runs one, as a process of the gang: `python -m torch.distributed.run`, or a script that reads `RANK`."""
_MPI_LAUNCHERS = frozenset(("mpirun", "mpiexec", "orterun", "horovodrun"))
"""Commands that start the processes of all nodes from one of them."""
_DECLARATIONS = frozenset(("export", "declare", "typeset", "local", "readonly"))
_PLACING = frozenset(("--nodelist", "-w", "--exclude", "-x", "--relative", "-r", "--nodefile", "-F"))
_NO_STEP = frozenset(("--version", "-V", "--help", "-h"))
_REMEDIES = {
    "random": "use $SLURM_JOB_ID or $MASTER_PORT, which are equal in all pods, or --env NAME=VALUE",
    "time": "use $SLURM_JOB_ID, which is equal in all pods, or --env NAME=VALUE",
    "host": "$MASTER_ADDR is the host of rank 0 in all pods",
}
_RENDEZVOUS = frozenset(("MASTER_ADDR", "MASTER_PORT"))
"""Variables that name one place where all tasks meet."""


class Finding(NamedTuple):
    """A line of a script, and what is to be said about it."""

    line: int
    text: str


class Findings(NamedTuple):
    """Sentences: what cannot work, and what may not do what its author expects."""

    problems: list[str]
    notes: list[str]


def gang_findings(script: str, plugin: str = "") -> Findings:
    """What the text of a script asks for that does not work in several pods.

    A script that neither has options of Slurm nor calls `srun` was written to run in every pod. Some plugins run it
    in one pod, where everything but `srun` works.
    """
    if not _SHELL.match(script):
        return Findings([], [])
    reader = _Steps(script)
    try:
        steps, _ = reader.commands("")
    except Unreadable:
        return Findings([], [])
    if not reader.step_lines and not _SBATCH.search(script):
        return Findings([], [])
    if plugin in RUN_ONCE:
        reader.problems, reader.notes = {}, {}
        if reader.step_lines:
            reader.problems["once"] = Finding(
                reader.step_lines[0],
                f"srun starts tasks in its own pod only, and --plugin {plugin} runs the script in one pod;"
                " remove srun: the plugin starts what the other pods need",
            )
    elif steps > 1:
        reader.problems["steps"] = Finding(
            reader.step_lines[-1],
            "more than one srun step, between which pods do not wait for each other; submit each step as a job"
            " of its own (--after), or use one pod (#SBATCH --nodes=1)",
        )
    return Findings(_sentences(reader.problems), _sentences(reader.notes))


def _sentences(findings: Mapping[str, Finding]) -> list[str]:
    return [f"line {line}: {text}" for line, text in sorted(findings.values(), key=attrgetter("line"))]


class _Steps(ShellReader):
    """Counts the steps of a script, and follows values that differ between pods to where tasks are given them."""

    def __init__(self, script: str) -> None:
        super().__init__(script, frozenset(RANKS))
        self.problems: dict[str, Finding] = {}
        self.notes: dict[str, Finding] = {}
        self.step_lines: list[int] = []
        """The lines of the first two steps."""
        self._exported = set(RANKS)
        self._differing: dict[str, dict[str, str]] = {
            "RANDOM": {"random": "$RANDOM"},
            "SRANDOM": {"random": "$SRANDOM"},
            PROCESS: {"random": "$$"},
            "BASHPID": {"random": "$BASHPID"},
            "EPOCHSECONDS": {"time": "$EPOCHSECONDS"},
            "HOSTNAME": {"host": "$HOSTNAME"},
            "SLURMD_NODENAME": {"host": "$SLURMD_NODENAME"},
        }
        """Variables that differ between pods, with the kinds of values that they have."""

    def simple(self, words: list[Word]) -> int:
        assigned = 0
        while assigned < len(words) and ASSIGNMENT.match(words[assigned].text):
            assigned += 1
        command = words[assigned:]
        if not command:
            for word in words:
                self.assign(word)
        elif command[0].text in _DECLARATIONS:
            self._declare(command)
        elif command[0].text == "let":
            for word in command[1:]:
                self.arithmetic(word.start, word.text)
        elif command[0].text == "printf" and command[1:2] and command[1].text == "-v":
            self._print_into(command[2:])
        elif launched := _launched(command):
            for word in words:
                self._check_value(self._differences(word), word)
            if _program(launched[0]) in _MPI_LAUNCHERS:
                self._report_mpi(launched)
            elif _program(launched[0]) == "srun" and not {word.text for word in launched[1:2]} & _NO_STEP:
                if len(self.step_lines) < 2:
                    self.step_lines.append(self.line(launched[0]))
                self._check_placing(launched)
                return 1 + sum(word.text == ":" for word in launched)
        return 0

    def _differences(self, word: Word) -> dict[str, str]:
        """What in a word differs between pods, by its kind."""
        found: dict[str, str] = {}
        for name in sorted(word.names & self._differing.keys()):
            found |= self._differing[name]
        for start, end in word.substitutions:
            for kind, pattern in _DIFFERING.items():
                if match := pattern.search(self.script, start, end):
                    found.setdefault(kind, match[0])
        return found

    def _declare(self, command: list[Word]) -> None:
        options = [word.text for word in command if word.text.startswith("-")]
        exports = command[0].text == "export" or any("x" in option for option in options)
        for word in command[1:]:
            if ASSIGNMENT.match(word.text):
                self.assign(word, exports)
            elif exports:
                self._exported.add(word.text)
                self._check_value(self._differing.get(word.text, {}), word, word.text)

    def assign(self, word: Word, exports: bool = False) -> None:
        match = ASSIGNMENT.match(word.text)
        assert match is not None
        name, differences = match[1], self._differences(word)
        if exports:
            self._exported.add(name)
        if name in self._exported:
            self._check_value(differences, word, name)
        if differences:
            self._differing[name] = dict.fromkeys(differences, f"${name}")
        elif not match[2]:
            self._differing.pop(name, None)

    def _print_into(self, words: list[Word]) -> None:
        """`printf -v NAME FORMAT ARGUMENT...` assigns a text with the values of its words."""
        if words and ASSIGNMENT.match(f"{words[0].text}="):
            names = {name for word in words[1:] for name in word.names}
            substitutions = [place for word in words[1:] for place in word.substitutions]
            name = words[0]
            self.assign(Word(name.start, f"{name.text}=", names=names, substitutions=substitutions))

    def _check_value(self, differences: dict[str, str], word: Word, variable: str = "") -> None:
        """Report a value that tasks of all pods are given: in this variable, or as an argument."""
        for kind, what in differences.items():
            is_problem = kind == "random" or variable in _RENDEZVOUS
            reported = self.problems if is_problem else self.notes
            if kind not in reported:
                reported[kind] = Finding(self.line(word), f"{what} differs between pods; {_REMEDIES[kind]}")

    def _report_mpi(self, launched: list[Word]) -> None:
        if "mpi" not in self.problems and not {word.text for word in launched[1:2]} & _NO_STEP:
            self.problems["mpi"] = Finding(
                self.line(launched[0]),
                f"{_program(launched[0])} starts the processes of all pods, but the script runs in every pod;"
                " --plugin mpi runs it in one pod",
            )

    def _check_placing(self, launched: list[Word]) -> None:
        options = iter(launched[1:])
        for word in options:
            if not word.text.startswith("-") or word.text in ("-", "--"):
                return
            option, value, _ = word.text.partition("=")
            if not word.text.startswith("--"):
                option, value = _short_option(word.text)
            if option in _PLACING:
                if "placing" not in self.problems:
                    self.problems["placing"] = Finding(
                        self.line(word),
                        f"srun {option} chooses nodes, but the script runs in every pod and srun starts the tasks"
                        " of its own pod; $MASTER_ADDR is the host of rank 0, and --plugin ray or mpi starts what"
                        " those frameworks need",
                    )
                return
            if value or "=" in word.text:
                continue
            if option not in SRUN_TAKES_VALUE:
                return
            if SRUN_TAKES_VALUE[option]:
                next(options, None)


def _short_option(text: str) -> tuple[str, str]:
    """The first option with a value of letters such as `-lw`, or the last one, and its value."""
    at = 1
    while at < len(text) - 1 and SRUN_TAKES_VALUE.get(f"-{text[at]}") is False:
        at += 1
    return f"-{text[at]}", text[at + 1 :]


def _program(word: Word) -> str:
    return word.text.rpartition("/")[2]


def _launched(command: list[Word]) -> list[Word]:
    """The words from the launcher on, also behind a command such as `timeout 1h`; empty if there is none."""
    if _is_launcher(command[0]):
        return command
    if command[0].text not in _PREFIXES or (command[1:] and command[1].text in ("-v", "-V")):
        return []
    at = next((at for at, word in enumerate(command) if _is_launcher(word)), len(command))
    return command[at:]


def _is_launcher(word: Word) -> bool:
    program = _program(word)
    return program in _LAUNCHERS or program in _MPI_LAUNCHERS or _PYTHON.fullmatch(program) is not None
