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
from stromboli.submission.slurm_options import SRUN_REFUSED, SRUN_TAKES_VALUE

_SHELL = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?)?(?:ba|da|a|k|z)?sh(?:\s|$)")
_SBATCH = re.compile(r"^#SBATCH\s", re.MULTILINE)
_DIFFERING = {
    "random": re.compile(
        r"\bS?RANDOM\b|(?<![^\s|;&(`])(?:shuf|uuidgen|mcookie)\b|/dev/u?random\b|/random/uuid\b"
        r"|\bopenssl\s+rand\b|\brandom\.(?:rand|choice|sample|getrandbits|uniform)|\buuid[14]\b"
        r"|\bsecrets\.|\bos\.urandom\b|\bgetsockname\b|\bsrand\(\)"
        r"|(?<![^\s|;&(`])mktemp\b(?=[^`)\n]{0,99}[\s=]"
        r"(?!-|[\"']?(?:/tmp|/var/tmp|/dev/shm|\$\{?TMPDIR)\b)[^\s`)]{0,99}/)"
    ),
    "time": re.compile(
        r"(?<![^\s|;&(`])date\b(?!\s+(?:-\S{1,99}\s+){0,9}[\"']?\+(?![^\"'`)\n]{0,99}%[sSNTcrXMHRIlk]))"
    ),
    "host": re.compile(r"(?<![^\s|;&(`])(?<!show )hostname\b"),
}
"""Commands whose output differs between pods, by what it is: `date` only with the time of day, `mktemp` in a folder
that pods may share.
"""
_PREFIXES = frozenset(("exec", "command", "nohup", "env", "timeout", "nice", "stdbuf"))
_LAUNCHERS = frozenset(("srun", "torchrun", "accelerate", "deepspeed"))
"""Commands whose tasks in all pods are given the same arguments."""
_PYTHON = re.compile(r"python[0-9.]*")
"""Each pod runs one, as a process of the gang: `python -m torch.distributed.run`, or a script that reads `RANK`."""
_MPI_LAUNCHERS = frozenset(("mpirun", "mpiexec", "orterun", "horovodrun"))
"""Commands that start the processes of all nodes from one of them."""
_ELSEWHERE = {
    "sbcast": "sbcast copies a file to the nodes of a job; the script runs in every pod, so use cp",
    **dict.fromkeys(
        ("ssh", "pdsh", "clush"),
        "the script runs in every pod, so each of them starts this command; srun starts the tasks of a pod",
    ),
}
"""Commands that reach other nodes, and what is to be said about them."""
_READERS = frozenset(("read", "mapfile", "readarray"))
_DECLARATIONS = frozenset(("export", "declare", "typeset", "local", "readonly"))
_PLACING = frozenset(("--nodelist", "-w", "--exclude", "-x", "--relative", "-r", "--nodefile", "-F"))
_NO_STEP = frozenset(("--version", "-V", "--help", "-h"))
_WORD = re.compile(r"[\w-]+")
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
        self._exports_all = False
        """Whether `set -a` exports each variable that is assigned."""
        self._bodies: dict[str, tuple[dict[str, Finding], dict[str, Finding], list[int]]] = {}
        """Problems, notes and steps of functions, which count where they are called."""
        self._outputs: dict[str, dict[str, str]] = {}
        """What may differ between pods in the output of functions, by its kind."""
        self._differing: dict[str, dict[str, str]] = {
            "RANDOM": {"random": "$RANDOM"},
            "SRANDOM": {"random": "$SRANDOM"},
            PROCESS: {"random": "$$"},
            "BASHPID": {"random": "$BASHPID"},
            "EPOCHSECONDS": {"time": "$EPOCHSECONDS"},
            "EPOCHREALTIME": {"time": "$EPOCHREALTIME"},
            "HOSTNAME": {"host": "$HOSTNAME"},
            "SLURMD_NODENAME": {"host": "$SLURMD_NODENAME"},
        }
        """Variables that differ between pods, with the kinds of values that they have."""

    def simple(self, words: list[Word], inputs: list[Word]) -> int:
        assigned = 0
        while assigned < len(words) and ASSIGNMENT.match(words[assigned].text):
            assigned += 1
        command = words[assigned:]
        if not command:
            for word in words:
                self.assign(word)
        elif command[0].text in self._bodies:
            self._call(command[0].text)
        elif launched := _launched(command):
            for word in words:
                self._check_value(self._differences(word), word)
            return self._launch(launched)
        else:
            self._builtin(command, inputs)
        return 0

    def _launch(self, launched: list[Word]) -> int:
        """The cost of a launcher: one for each program in a step of `srun`."""
        if _program(launched[0]) in _MPI_LAUNCHERS:
            self._report_mpi(launched)
        elif _program(launched[0]) == "srun" and not {word.text for word in launched[1:2]} & _NO_STEP:
            if len(self.step_lines) < 2:
                self.step_lines.append(self.line(launched[0]))
            self._check_options(launched)
            return 1 + sum(word.text == ":" for word in launched)
        return 0

    def _builtin(self, command: list[Word], inputs: list[Word]) -> None:
        """A command that assigns to variables, or reaches other nodes."""
        name = command[0].text
        if name in _DECLARATIONS:
            self._declare(command)
        elif name == "set":
            self._set(command[1:])
        elif name == "let":
            for word in command[1:]:
                self.arithmetic(word.start, word.text)
        elif name == "printf" and command[1:2] and command[1].text == "-v":
            self._assign_from(command[3:], command[2:3])
        elif name in _READERS:
            self._assign_from(inputs, command[1:])
        elif (program := _program(command[0])) in _ELSEWHERE:
            reported = self.problems if program == "sbcast" else self.notes
            reported.setdefault(program, Finding(self.line(command[0]), _ELSEWHERE[program]))

    def _call(self, name: str) -> None:
        problems, notes, steps = self._bodies[name]
        self.problems, self.notes = problems | self.problems, notes | self.notes
        self.step_lines = [*self.step_lines, *steps][:2]

    def _define(self, name: str) -> None:
        outer, start = (self.problems, self.notes, self.step_lines), self._at
        self.problems, self.notes, self.step_lines = {}, {}, []
        super()._define(name)
        self._bodies[name] = self.problems, self.notes, self.step_lines
        self.problems, self.notes, self.step_lines = outer
        if differences := self._commands_in(start, self._at):
            self._outputs[name] = dict.fromkeys(differences, f"the output of {name}")

    def _commands_in(self, start: int, end: int) -> dict[str, str]:
        """Which text there gives a value that differs between pods, by its kind."""
        found: dict[str, str] = {}
        for kind, pattern in _DIFFERING.items():
            if match := pattern.search(self.script, start, end):
                found[kind] = f"${match[0]}" if match[0] in self._differing else match[0]
        return found

    def _differences(self, word: Word) -> dict[str, str]:
        """What in a word differs between pods, by its kind."""
        found: dict[str, str] = {}
        for name in sorted(word.names & self._differing.keys()):
            found |= self._differing[name]
        for start, end in word.substitutions:
            found = self._commands_in(start, end) | found
            if self._outputs:
                for name in _WORD.findall(self.script, start, end):
                    found |= self._outputs.get(name, {})
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
        if exports or self._exports_all:
            self._exported.add(name)
        if name in self._exported:
            self._check_value(differences, word, name)
        if differences:
            self._differing[name] = dict.fromkeys(differences, f"${name}")
        elif not match[2]:
            self._differing.pop(name, None)

    def _assign_from(self, sources: list[Word], targets: list[Word]) -> None:
        """`printf -v NAME FORMAT ARGUMENT...` and `read NAME < <(COMMAND)` assign what comes from other words."""
        names = {name for source in sources for name in source.names}
        substitutions = [place for source in sources for place in source.substitutions]
        for target in targets:
            if ASSIGNMENT.match(f"{target.text}="):
                self.assign(Word(target.start, f"{target.text}=", names=names, substitutions=substitutions))

    def _set(self, words: list[Word]) -> None:
        for option, value in zip(words, [*words[1:], None], strict=True):
            if re.fullmatch(r"[-+]\w*a\w*", option.text) or (value and value.text == "allexport"):
                self._exports_all = option.text.startswith("-")

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

    def _check_options(self, launched: list[Word]) -> None:
        options = iter(launched[1:])
        for word in options:
            if not word.text.startswith("-") or word.text in ("-", "--"):
                return
            option, equals, value = word.text.partition("=")
            if not word.text.startswith("--"):
                option, value = _short_option(word.text)
            if "\0" in option:
                return
            if SRUN_TAKES_VALUE.get(option) and not (value or equals):
                value = getattr(next(options, None), "text", "")
            if option in _PLACING:
                why = (
                    "chooses nodes, but the script runs in every pod and srun starts the tasks of its own pod;"
                    " $MASTER_ADDR is the host of rank 0, and --plugin ray or mpi starts what those frameworks need"
                )
            elif option not in SRUN_TAKES_VALUE:
                why = "is no option of srun; remove or correct it"
            elif option in SRUN_REFUSED and (option, value) != ("--mpi", "none"):
                why = f"is not supported; {SRUN_REFUSED[option]}"
            else:
                continue
            self.problems.setdefault(why, Finding(self.line(word), f"srun {option} {why}"))


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
