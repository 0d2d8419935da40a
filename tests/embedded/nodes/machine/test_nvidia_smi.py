"""GPUs by nvidia-smi: missing, failing, hanging, talking nonsense, or listing cards that do not work."""

import logging
import time

import pytest

from stromboli.embedded.nodes.machine import nvidia_smi
from stromboli.embedded.nodes.machine.nvidia_smi import NvidiaSmiError, find_gpus, parse_gpus, visible_gpus
from tests.embedded.nodes.machine.fake_nvidia_smi import H200, install, row, uuid


def found(folder, *rows, script="", **variables):
    return find_gpus({"PATH": str(install(folder, *rows, script=script)), **variables})


def test_cards_have_their_uuid_model_and_memory(tmp_path):
    assert found(tmp_path, row(1), row(0)) == [(0, uuid(0), H200, 143771), (1, uuid(1), H200, 143771)]


def test_the_fields_that_are_asked_for_are_those_that_are_read(tmp_path):
    script = 'case "$1" in --query-gpu=index,uuid,name,memory.total,mig.mode.current) ;; *) exit 1;; esac; '
    script += f'[ "$2" = --format=csv,noheader,nounits ] && echo "{row(0)}"'
    assert len(found(tmp_path, script=script)) == 1


def test_a_machine_without_the_program_or_without_cards_has_none(tmp_path):
    assert find_gpus({"PATH": str(tmp_path)}) == []
    assert found(tmp_path) == []
    assert found(tmp_path, "No devices were found") == []


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18",
            "exit code 18: Failed",
        ),
        ("echo hello; echo world", "no list of GPUs"),
        ("while :; do echo 0123456789012345678901234567890123456789; done", "more than 65536 bytes"),
        ("head -c 200 /dev/urandom", "nvidia-smi"),
    ],
)
def test_a_program_that_fails_or_talks_nonsense_is_an_error_that_says_so(tmp_path, script, message):
    with pytest.raises(NvidiaSmiError, match=message):
        found(tmp_path, script=script)


def test_a_program_that_cannot_be_run_is_an_error(tmp_path):
    bin = install(tmp_path)
    (bin / "nvidia-smi").write_text("#!/no/such/shell\n")
    with pytest.raises(NvidiaSmiError, match="cannot be run"):
        find_gpus({"PATH": str(bin)})


def test_a_program_that_hangs_is_killed_with_what_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(nvidia_smi, "TIMEOUT", 0.3)
    begin = time.monotonic()
    with pytest.raises(NvidiaSmiError, match=r"within 0\.3 s"):
        found(tmp_path, script="/bin/sleep 1000 & /bin/sleep 1000")
    assert time.monotonic() - begin < 100


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("1, [N/A], NVIDIA H200, 143771, Disabled", "error state"),
        (f"1, {uuid(1)}, [Unknown Error], 143771, Disabled", "error state"),
        (f"1, {uuid(1)}, NVIDIA H200, [GPU requires reset], [N/A]", "error state"),
        (f"1, {uuid(1)}, ERR!, 143771, Disabled", "error state"),
        (row(1, mig="Enabled"), "MIG"),
        (f"1, {uuid(0)}, NVIDIA H200, 143771, Disabled", "another card"),
        (f"-1, {uuid(1)}, NVIDIA H200, 143771, Disabled", "no index"),
        ("1, Unable to determine the device handle for GPU 0000:0B:00.0", "fields"),
    ],
)
def test_a_card_that_does_not_work_is_left_out_with_a_line_in_the_log(tmp_path, caplog, bad, problem):
    nvidia_smi._warn.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [gpu.uuid for gpu in found(tmp_path, row(0), bad)] == [uuid(0)]
    [message] = caplog.messages
    assert problem in message
    assert message.endswith("left out")


def test_old_cards_know_no_mig(tmp_path):
    assert len(found(tmp_path, row(0, name="Tesla V100-SXM2-32GB", mig="[N/A]"))) == 1


def test_no_more_cards_are_taken_than_a_node_may_have():
    gpus, problems = parse_gpus("\n".join(row(number) for number in range(200)))
    assert len(gpus) == 128
    assert "200 GPUs" in problems[-1]


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("void", []),
        ("2,0", [0, 2]),
        ("1,7,2", [1]),
        (f"{uuid(2)}", [2]),
        ("GPU-00000001", [1]),
        ("GPU-", []),
        ("1,1", [1]),
    ],
)
def test_our_own_variable_bounds_what_we_offer(visible, numbers):
    gpus, _ = parse_gpus("\n".join(row(number) for number in range(3)))
    assert [gpu.number for gpu in visible_gpus(gpus, visible)] == numbers
