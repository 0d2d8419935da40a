"""Signals of commands that take effect between two steps."""

from __future__ import annotations

import os
import signal

import pytest

from stromboli.daemon.noted_signals import noted_signals


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with noted_signals(signal.SIGHUP, signal.SIGTERM) as interrupted:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not interrupted()
            os.kill(os.getpid(), signal.SIGTERM)
            assert interrupted()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_interrupts_at_once_where_nobody_is_patient() -> None:
    before = signal.getsignal(signal.SIGINT)
    with noted_signals(signal.SIGINT, impatient=True) as interrupted:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
