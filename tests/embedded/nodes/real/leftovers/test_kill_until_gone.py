import asyncio

from stromboli.embedded.nodes.real.leftovers import kill_until_gone as killing


def test_processes_are_killed_again_until_they_are_gone_and_people_are_told_once(monkeypatch, caplog):
    monkeypatch.setattr(killing, "END_TIMEOUT", -1.0)
    monkeypatch.setattr(killing, "RETRY", 0.0)
    outcomes = iter([False, False, False, True])
    asyncio.run(killing.kill_until_gone(lambda seconds: next(outcomes), "pod default/p"))
    assert list(outcomes) == []
    assert [record.getMessage() for record in caplog.records] == [
        "pod default/p: killed processes do not end"
    ]
