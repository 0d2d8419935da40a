"""`stromboli run` and `submit` as users type them, on real nodes of `stromboli up`."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedded.up_process import Up, eventually

pytestmark = pytest.mark.slow
SECONDS = 60
SLOWER_THAN_HELP = 15
"""Times that a command on a node may take of `stromboli --help`, which only starts Python."""
EXAMPLES = Path(__file__).parents[3] / "examples" / "jobs"
STROMBOLI = (sys.executable, "-m", "stromboli")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("run") / "up"
    folder.mkdir()
    with Up(folder / "data", "--nodes", "1x8cpu,8Gi", "--real") as running:
        yield running


Done = subprocess.CompletedProcess[str]


def typed(up: Up, folder: Path, *arguments: str) -> Done:
    return subprocess.run(
        [*STROMBOLI, *arguments],
        env=up.environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def jobs(up: Up) -> str:
    return subprocess.run(
        [*STROMBOLI, "job", "list", "-o", "name"],
        env=up.environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_command_runs_in_this_folder_and_prints_what_it_prints(up: Up, tmp_path: Path) -> None:
    (tmp_path / "hello.sh").write_text('echo "hello from $PWD"; echo $(echo $((1 + 1))) "$1"')
    done = typed(up, tmp_path, "run", "--", "sh", "hello.sh", "a  b")
    assert (done.returncode, done.stdout) == (0, f"hello from {tmp_path}\n2 a  b\n"), done.stderr
    assert re.fullmatch(r"job.batch.volcano.sh/hello-\w{5} created\n", done.stderr)


def test_ranks_stand_before_the_lines_of_a_gang(up: Up, tmp_path: Path) -> None:
    script = 'echo "rank $STROMBOLI_RANK of $STROMBOLI_WORLD_SIZE"'
    done = typed(up, tmp_path, "run", "--quiet", "--replicas", "3", "--", "sh", "-c", script)
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] rank {rank} of 3" for rank in range(3)], (
        done.stderr
    )
    assert done.stderr == ""


def test_the_exit_code_is_that_of_the_container_that_failed(up: Up, tmp_path: Path) -> None:
    script = "echo working; [ $STROMBOLI_RANK = 1 ] && exit 42; sleep 100"
    done = typed(up, tmp_path, "run", "--replicas", "2", "--", "sh", "-c", script)
    assert (done.returncode, "exit code 42" in done.stderr) == (42, True), done.stderr


def test_a_framework_finds_its_master(up: Up, tmp_path: Path) -> None:
    script = "echo $RANK of $WORLD_SIZE at $MASTER_ADDR"
    done = typed(up, tmp_path, "run", "--plugin", "pytorch", "--replicas", "2", "--", "sh", "-c", script)
    assert sorted(done.stdout.splitlines()) == ["[0] 0 of 2 at 127.0.0.1", "[1] 1 of 2 at 127.0.0.1"], (
        done.stderr
    )


def test_lines_of_python_appear_while_it_runs_with_the_rank_of_their_process(up: Up, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, time\n"
        "names = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR', 'MASTER_PORT')\n"
        "print(*map(os.environ.get, names))\n"
        "while not os.path.exists('end'): time.sleep(0.1)\n"
    )
    command = [*STROMBOLI, "run", "--quiet", "--replicas", "2", "--", "python3", "train.py"]
    with subprocess.Popen(
        command, env=up.environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        lines = sorted(running.stdout.readline() for _ in range(2))
        (tmp_path / "end").touch()
        assert running.wait(SECONDS) == 0
    ports = {line.split()[-1] for line in lines}
    assert len(ports) == 1
    port = ports.pop()
    assert lines == [f"[{rank}] {rank} 2 0 127.0.0.1 {port}\n" for rank in range(2)]


def test_a_terminal_is_allocated_where_requested(up: Up, tmp_path: Path) -> None:
    done = typed(up, tmp_path, "run", "--quiet", "--tty", "--", "sh", "-c", "test -t 1 && echo terminal")
    assert done.stdout == "terminal\n", done.stderr


@pytest.mark.parametrize(
    ("options", "variables", "shown"),
    [
        ([], {}, "hello"),
        (["--export=NONE"], {}, "-"),
        (["--export", "GREETING=hi"], {"SBATCH_EXPORT": "NONE"}, "hi"),
        ([], {"SBATCH_EXPORT": "NONE"}, "-"),
        (["--env", "GREETING=ours"], {}, "ours"),
    ],
)
def test_a_script_gets_the_environment_that_sbatch_would_pass(
    up: Up, tmp_path: Path, options: list[str], variables: dict[str, str], shown: str
) -> None:
    (tmp_path / "greet.sh").write_text('#!/bin/sh\n#SBATCH --export=ALL\necho "${GREETING:--}"\n')
    done = subprocess.run(
        [*STROMBOLI, "submit", "--wait", *options, "greet.sh"],
        env=up.environment | {"GREETING": "hello"} | variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.stdout.splitlines()[1:] == [shown], done.stderr


def test_a_script_that_needs_steps_of_slurm_is_refused(up: Up, tmp_path: Path) -> None:
    text = "#!/bin/sh\n#SBATCH -J steps -N 2\nsrun ./prepare\nsrun -w a ./train\n"
    (tmp_path / "steps.sh").write_text(text)
    done = typed(up, tmp_path, "submit", "--wait", "steps.sh")
    assert done.returncode == 2
    assert "steps.sh cannot run in 2 pods:\n  line 4: srun -w chooses nodes" in done.stderr
    assert "steps" not in jobs(up)


def test_an_array_runs_a_number_of_its_indexes_at_a_time(up: Up, tmp_path: Path) -> None:
    script = 'mkdir busy || exit 9; echo "index $SLURM_ARRAY_TASK_ID"; sleep 0.2; rmdir busy'
    done = typed(up, tmp_path, "run", "--array", "1-5:2%1", "--", "sh", "-c", script)
    assert (done.returncode, sorted(line[4:] for line in done.stdout.splitlines())) == (
        0,
        ["index 1", "index 3", "index 5"],
    ), done.stderr


def test_jobs_run_one_after_the_other(up: Up, tmp_path: Path) -> None:
    first = typed(up, tmp_path, "run", "-d", "--name", "first", "--", "sh", "-c", "sleep 1; touch there")
    assert first.stdout == "job.batch.volcano.sh/first created\n"
    second = typed(up, tmp_path, "run", "--after", "first", "--", "ls", "there")
    assert (second.returncode, second.stdout) == (0, "there\n"), second.stderr


def test_a_time_limit_ends_a_job(up: Up, tmp_path: Path) -> None:
    done = typed(up, tmp_path, "run", "--time", "1s", "--", "sleep", "1000")
    assert (done.returncode != 0, "DeadlineExceeded" in done.stderr) == (True, True), done.stderr


def test_hostile_output_is_shown_harmlessly(up: Up, tmp_path: Path) -> None:
    script = r"printf '\033]0;owned\007\033[2Jgone\nlast\n'; head -c 3000000 /dev/zero | tr '\0' x; echo"
    done = typed(up, tmp_path, "run", "--quiet", "--", "sh", "-c", script)
    first, second, *long = done.stdout.splitlines()
    assert (first, second) == ("gone", "last")
    assert max(map(len, long)) < 64 * 1024


@pytest.mark.parametrize(
    ("command", "code"),
    [(["run", "--name", "endless", "--", "yes"], 141), (["job", "logs", "-f", "endless"], -13)],
)
def test_commands_end_when_nobody_reads_them_any_more(
    up: Up, tmp_path: Path, command: list[str], code: int
) -> None:
    if command[0] == "job":
        typed(up, tmp_path, "run", "--name", "endless", "--detach", "--", "yes")
    with subprocess.Popen(
        [*STROMBOLI, *command],
        env=up.environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"y\n"
        running.stdout.close()
        try:
            assert running.wait(SECONDS) == code
        finally:
            running.kill()
            typed(up, tmp_path, "job", "delete", "endless")


def test_a_job_that_waits_says_why(up: Up, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*STROMBOLI, "run", "--cpus", "1000", "--name", "huge", "--", "true"],
        env=up.environment,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = ""
        while "huge pending: " not in line or "cpu" not in line:
            line = process.stderr.readline()
            assert line
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
    assert process.returncode == 128 + signal.SIGTERM
    assert "job.batch.volcano.sh/huge goes on" in rest
    assert "huge" in jobs(up)


def test_a_script_runs_as_on_slurm(up: Up, tmp_path: Path) -> None:
    (tmp_path / "night.sh").write_text(
        "#!/bin/sh\n#SBATCH -J night -N 2 --ntasks-per-node=2 --time=5 --mail-type=END\n"
        "#SBATCH -o logs/%x-%n.txt\n"
        'srun sh -c \'echo "task $SLURM_PROCID of $SLURM_NTASKS in $SLURM_SUBMIT_DIR: $1"\' sh "$1"\n'
    )
    done = typed(up, tmp_path, "submit", "--wait", "--cpus", "0.1", "night.sh", "x y")
    lines = [f"task {task} of 4 in {tmp_path}: x y" for task in range(4)]
    announced, *shown = done.stdout.splitlines()
    assert re.fullmatch(r"Submitted job night-\w{5}", announced)
    assert sorted(line[4:] for line in shown) == lines, done.stderr
    assert sorted((tmp_path / "logs" / "night-1.txt").read_text().splitlines()) == lines[2:]
    assert "note: --mail-type is not honoured" in done.stderr


def test_the_examples_run(up: Up, tmp_path: Path) -> None:
    done = typed(up, tmp_path, "submit", "--wait", str(EXAMPLES / "train.sh"))
    assert sorted(line[4:] for line in done.stdout.splitlines()[1:]) == [
        f"task {task} of 4, seed 7" for task in range(4)
    ], done.stderr
    done = typed(up, tmp_path, "submit", "--wait", str(EXAMPLES / "array.sh"))
    assert sorted(line[4:] for line in done.stdout.splitlines()[1:]) == [
        f"rate 0.{index}, index {index} of 3" for index in (1, 3, 5)
    ], done.stderr


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, up: Up, folder: Path, *arguments: str) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(STROMBOLI[0], [*STROMBOLI, *arguments], up.environment)
        self.output = ""

    def until(self, text: str) -> None:
        deadline = time.monotonic() + SECONDS
        while text not in self.output:
            assert time.monotonic() < deadline, self.output
            if select.select([self._terminal], [], [], 0.5)[0]:
                self.output += os.read(self._terminal, 65536).decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def end(self) -> int:
        """The exit status; what is still printed is read."""
        try:
            while piece := os.read(self._terminal, 65536):
                self.output += piece.decode(errors="replace")
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(status)


def test_ctrl_c_asks_whether_to_cancel(up: Up, tmp_path: Path) -> None:
    terminal = Terminal(
        up, tmp_path, "run", "--name", "cancelled", "--", "sh", "-c", "echo begun; sleep 1000"
    )
    terminal.until("begun")
    terminal.type("\x03")
    terminal.until("Cancel the job (c)")
    terminal.type("c\n")
    assert terminal.end() == 130
    assert "cancelled and deleted" in terminal.output
    eventually(lambda: "cancelled" not in jobs(up), SECONDS)


def test_ctrl_c_may_be_taken_back(up: Up, tmp_path: Path) -> None:
    script = "echo begun; while [ ! -e end ]; do sleep 0.1; done; echo ended"
    terminal = Terminal(up, tmp_path, "run", "--replicas", "2", "--", "sh", "-c", script)
    terminal.until("begun")
    terminal.type("\x03")
    terminal.until("Cancel the job (c)")
    terminal.type("continue\n")
    terminal.until("continue\r\n\r\nCancel the job (c)")  # asked again
    terminal.type("\n")
    (tmp_path / "end").touch()
    assert terminal.end() == 0
    assert "\x1b[36m[0] \x1b[0mended" in terminal.output


def test_a_second_ctrl_c_leaves_the_job_running(up: Up, tmp_path: Path) -> None:
    terminal = Terminal(up, tmp_path, "run", "--name", "left", "--", "sh", "-c", "echo begun; sleep 1000")
    terminal.until("begun")
    terminal.type("\x03")
    terminal.until("Cancel the job (c)")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert "left goes on" in terminal.output
    assert "left" in jobs(up)


def test_the_first_line_comes_soon_after_the_return_key(up: Up, tmp_path: Path) -> None:
    typed(up, tmp_path, "run", "--", "true")
    commands = {"help": ("--help",), "run": ("run", "--quiet", "--", "echo", "hello")}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(3):
        for name, command in commands.items():
            begin = time.monotonic()
            assert "hello\n" in typed(up, tmp_path, *command).stdout or name == "help"
            seconds[name].append(time.monotonic() - begin)
    fastest = {name: min(each) for name, each in seconds.items()}
    assert fastest["run"] < SLOWER_THAN_HELP * fastest["help"], fastest
