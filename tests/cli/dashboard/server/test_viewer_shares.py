"""What one viewer may take of the server."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from stromboli.cli.dashboard.server import viewer_shares
from stromboli.cli.dashboard.server.viewer_shares import MOST_OWN_RENDERS, TooManyStreams, ViewerShares


def test_a_viewer_has_so_many_streams_and_gets_more_when_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer_shares, "MOST_OWN_STREAMS", 2)
    shares = ViewerShares()
    with shares.stream("ann"):
        with shares.stream("ann"), pytest.raises(TooManyStreams), shares.stream("ann"):
            pass
        with shares.stream("ann") as ended:
            assert not ended.is_set()


def test_who_has_most_gives_his_oldest_to_a_newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewer_shares, "MOST_STREAMS", 4)
    shares = ViewerShares()
    with ExitStack() as stack:
        greedy = [stack.enter_context(shares.stream("greedy")) for _ in range(4)]
        ann = [stack.enter_context(shares.stream("ann")) for _ in range(2)]
        assert [ended.is_set() for ended in (*greedy, *ann)] == [True, True, False, False, False, False]
        with pytest.raises(TooManyStreams), shares.stream("ann"):
            pass


def test_nothing_is_kept_of_those_who_have_left() -> None:
    shares = ViewerShares()
    with shares.stream("ann"):
        pass
    with pytest.raises(ZeroDivisionError), shares.stream("bob"):
        raise ZeroDivisionError
    assert shares._streams == {}
    shares.renders.of("ann")
    assert len(shares.renders) == 0


def test_pages_of_a_viewer_are_rendered_a_few_at_a_time() -> None:
    shares = ViewerShares()
    turn = shares.renders.of("ann")
    assert shares.renders.of("ann") is turn
    assert shares.renders.of("bob") is not turn
    assert turn._value == MOST_OWN_RENDERS
