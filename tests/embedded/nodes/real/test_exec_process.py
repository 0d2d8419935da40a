"""Further commands in a running container: they share what it started with, and nothing of them is left behind."""

import asyncio
import os
import signal
import sys
import time
from contextlib import asynccontextmanager

import pytest

from stromboli.embedded.nodes.real.container_environment import ContainerError
from stromboli.embedded.nodes.real.container_launch import ContainerLaunch
from stromboli.embedded.nodes.real.container_logs import LogFile
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.exec_process import CommandResult, ExecProcess, run_command
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian
from stromboli.embedded.nodes.real.process_stdio import ProcessStdio


@asynccontextmanager
async def container(folder, *arguments):
    guardian = ProcessGuardian()
    variables = {"PATH": os.environ["PATH"], "COLOUR": "blue"}
    log = LogFile(folder / "0.log")
    launch = ContainerLaunch([*(arguments or ("sleep", "987"))], folder, variables)
    running = await ContainerProcess.start(launch, guardian, log)
    try:
        yield running
    finally:
        running.kill()
        await running.wait()
        guardian.close()


def run(folder, scenario):
    async def within():
        async with container(folder) as running:
            return await scenario(running)

    return asyncio.run(asyncio.wait_for(within(), 30))


def sh(script, timeout=10.0, most_output=100):
    return lambda running: run_command(running, ["sh", "-c", script], timeout, most_output)


@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        ("echo $COLOUR; echo err >&2", 0, b"blue\nerr\n"),
        ("exit 3", 3, b""),
        ("kill -9 $$", 137, b""),
        ("cat", 0, b""),
        ("yes | head -c 1000000", 0, b"y\n" * 50),
    ],
)
def test_a_command_has_the_environment_of_its_container(tmp_path, script, code, output):
    assert run(tmp_path, sh(script)) == CommandResult(code, output)


def test_a_command_runs_where_its_container_does(tmp_path):
    (tmp_path / "here").touch()
    assert run(tmp_path, sh("ls here")) == CommandResult(0, b"here\n")


def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path):
    code, output = run(tmp_path, sh("trap '' HUP; sleep 987 & echo $!; wait", 0.3))
    assert code is None
    assert _ends(int(output))


@pytest.mark.parametrize("terminal", [False, True])
def test_a_command_that_is_not_there_is_named(tmp_path, terminal):
    async def scenario(running):
        stdio = await (ProcessStdio.pseudo_terminal() if terminal else ProcessStdio.pipes())
        with pytest.raises(ContainerError, match=r"no-such-program: executable file not found in \$PATH"):
            await ExecProcess.start(running, ["no-such-program"], stdio)
        stdio = await (ProcessStdio.pseudo_terminal() if terminal else ProcessStdio.pipes())
        with pytest.raises(ContainerError, match=r"0\.log: .*Permission denied"):
            await ExecProcess.start(running, ["./0.log"], stdio)

    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    run(tmp_path, scenario)
    assert not before or len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
@pytest.mark.parametrize("made", [0, 1, 2])
def test_pipes_that_are_not_all_to_be_had_are_closed(monkeypatch, made):
    pipe, pipes = os.pipe, iter(range(made))

    def scarce():
        if next(pipes, None) is None:
            raise OSError(24, "Too many open files")
        return pipe()

    async def scenario():
        before = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr(os, "pipe", scarce)
        with pytest.raises(OSError, match="Too many"):
            await ProcessStdio.pipes(stdin=True, stderr=True)
        async with asyncio.timeout(10):
            while len(os.listdir("/proc/self/fd")) > before:
                await asyncio.sleep(0.01)  # transports close at the next turn of the loop

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("terminal", [False, True])
def test_pipes_are_closed_if_their_opening_is_cancelled(terminal, turns):
    async def scenario():
        before = len(os.listdir("/proc/self/fd"))
        opening = asyncio.create_task(
            ProcessStdio.pseudo_terminal() if terminal else ProcessStdio.pipes(stdin=True, stderr=True)
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        if not opening.cancel():
            return opening.result().close_ends(), opening.result().close()
        async with asyncio.timeout(10):
            while len(os.listdir("/proc/self/fd")) > before:
                await asyncio.sleep(0.01)  # transports close at the next turn of the loop

    asyncio.run(scenario())


def test_a_command_reads_its_input_and_separates_errors(tmp_path):
    async def scenario(running):
        stdio = await ProcessStdio.pipes(stdin=True, stderr=True)
        async with await ExecProcess.start(running, ["sh", "-c", "cat; echo err >&2"], stdio) as command:
            await stdio.stdin.write(b"hello")
            stdio.stdin.end()
            return await stdio.stdout.read(), await stdio.stderr.read(), await command.wait()

    assert run(tmp_path, scenario) == (b"hello", b"err\n", 0)


def test_a_command_on_a_terminal_sees_its_size_and_its_signals(tmp_path):
    script = "trap 'exit 42' INT; stty size; env | cut -d= -f1 | xargs; while :; do sleep 0.02; done"

    async def scenario(running):
        stdio = await ProcessStdio.pseudo_terminal()
        stdio.resize(33, 123)
        async with await ExecProcess.start(running, ["sh", "-c", script], stdio) as command:
            output = b""
            while b"PATH" not in output:
                output += await stdio.stdout.read()
            ended = asyncio.ensure_future(command.wait())
            while not ended.done():  # a shell that is just starting a command may miss an interrupt
                await stdio.stdin.write(b"\x03")
                await asyncio.wait({ended}, timeout=0.5)
            return output.split(), await ended

    output, code = run(tmp_path, scenario)
    assert output[:2] == [b"33", b"123"]
    assert set(output[2:]) <= {b"COLOUR", b"TERM", b"PATH", b"PWD", b"OLDPWD", b"SHLVL", b"_"}
    assert code == 42


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
@pytest.mark.parametrize("terminal", [False, True])
def test_a_command_is_ended_by_signals_that_its_server_ignores(tmp_path, terminal, number):
    """As under `nohup`, or in the background of a script."""

    async def scenario(running):
        stdio = await (ProcessStdio.pseudo_terminal() if terminal else ProcessStdio.pipes())
        script = f"kill -{number.name.removeprefix('SIG')} $$; echo still here"
        async with await ExecProcess.start(running, ["sh", "-c", script], stdio) as command:
            return await command.wait()

    before = signal.signal(number, signal.SIG_IGN)
    try:
        assert run(tmp_path, scenario) == 128 + number
    finally:
        signal.signal(number, before)


def test_the_last_output_on_a_terminal_is_not_lost(tmp_path):
    async def scenario(running):
        stdio = await ProcessStdio.pseudo_terminal()
        async with await ExecProcess.start(
            running, ["sh", "-c", "echo one; seq 500; echo end"], stdio
        ) as command:
            await command.wait()
            output = b""
            while piece := await stdio.stdout.read():
                output += piece
            return output

    output = run(tmp_path, scenario).split()
    assert (output[0], output[-1], len(output)) == (b"one", b"end", 502)


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_jobs_of_a_shell_on_a_terminal_end_with_it(tmp_path):
    async def scenario(running):
        stdio = await ProcessStdio.pseudo_terminal()
        command = ["sh", "-c", "set -m; (trap '' HUP; exec sleep 987) & echo $!"]
        async with await ExecProcess.start(running, command, stdio) as started:
            output = await stdio.stdout.read()
            await started.wait()
            return int(output)

    assert _ends(run(tmp_path, scenario))


def test_a_client_that_leaves_ends_its_command(tmp_path):
    async def scenario(running):
        stdio = await ProcessStdio.pipes()
        command = ["sh", "-c", "trap '' HUP; echo $$; while :; do sleep 0.1; done"]
        async with await ExecProcess.start(running, command, stdio):
            pid = int(await stdio.stdout.read())
        return pid, running.commands

    pid, commands = run(tmp_path, scenario)
    assert _ends(pid)
    assert not commands


def test_commands_end_with_their_container(tmp_path):
    async def scenario():
        async with container(tmp_path) as running:
            begun = tmp_path / "begun"
            command = asyncio.create_task(sh(f"echo $$; touch {begun}; sleep 987", 30.0)(running))
            while not begun.exists():
                await asyncio.sleep(0.01)
            running.kill()
            await running.wait()
            with pytest.raises(ContainerError, match="the container has ended"):
                await sh("true")(running)
            return await command

    code, output = asyncio.run(scenario())
    assert code == 137
    assert _ends(int(output))


def test_a_command_ends_though_another_process_still_writes_its_output(tmp_path, monkeypatch):
    """It would write forever."""
    monkeypatch.setattr("stromboli.embedded.nodes.real.process_stdio.OUTPUT_WAIT", 0.2)
    script = "setsid sh -c 'while echo busy; do sleep 0.01; done' & sleep 0.1; exit 4"
    assert run(tmp_path, sh(script, timeout=1000.0)).code == 4


def _ends(pid):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False
