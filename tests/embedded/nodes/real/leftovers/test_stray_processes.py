import asyncio
import subprocess
import sys

import pytest

from stromboli.embedded.nodes.real.leftovers import stray_processes
from stromboli.embedded.nodes.real.leftovers.stray_processes import StrayProcesses
from stromboli.embedded.nodes.real.process_guardian import ROOT, kill_marked


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_pods_that_end_at_the_same_time_share_a_search(tmp_path, monkeypatch):
    roots = [f"{tmp_path}/{number}/root" for number in range(20)]
    strays = [
        subprocess.Popen(["sleep", "987"], start_new_session=True, env={ROOT: root})
        for root in [*roots, "/other"]
    ]
    searches = []

    def search(given):
        searches.append(list(given))
        return kill_marked(given, 10.0)

    async def scenario():
        monkeypatch.setattr(stray_processes, "kill_marked", search)
        killer = StrayProcesses()
        first = asyncio.create_task(killer.kill(roots[0]))
        await asyncio.sleep(0)
        return await asyncio.gather(first, *map(killer.kill, roots))

    try:
        assert asyncio.run(asyncio.wait_for(scenario(), 30)) == [True] * 21
        assert [stray.wait(5) for stray in strays[:-1]] == [-9] * 20
        assert strays[-1].poll() is None
        assert len(searches) <= 2
    finally:
        for stray in strays:
            stray.kill()
            stray.wait()


def test_a_pod_whose_processes_do_not_end_keeps_no_other_waiting(monkeypatch):
    async def scenario():
        killer = StrayProcesses()
        return await asyncio.gather(*map(killer.kill, ("/stuck", "/other")))

    monkeypatch.setattr(stray_processes, "kill_marked", lambda roots: {"/stuck"} & set(roots))
    assert asyncio.run(scenario()) == [False, True]


@pytest.mark.parametrize("error", [OSError("no /proc"), IndexError("a strange stat")])
def test_a_search_that_fails_keeps_no_pod_waiting_now_or_later(monkeypatch, error):
    def search(_):
        raise error

    async def scenario():
        killer = StrayProcesses()
        return [await asyncio.wait_for(killer.kill("/root"), 10) for _ in range(2)]

    monkeypatch.setattr(stray_processes, "kill_marked", search)
    assert asyncio.run(scenario()) == [False, False]
