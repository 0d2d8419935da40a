"""Times and sizes as Slurm writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.submission.bad_request import BadRequest
from stromboli.submission.slurm_values import slurm_bytes, slurm_seconds

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30 * MINUTE),
        ("30:15", 30 * MINUTE + 15),
        ("1:30:00", 90 * MINUTE),
        ("100:00:00", 100 * HOUR),
        ("2-12", 2 * DAY + 12 * HOUR),
        ("2-12:30", 2 * DAY + 12 * HOUR + 30 * MINUTE),
        ("1-00:00:05", DAY + 5),
        ("0:30", 30),
        ("0", None),
        ("UNLIMITED", None),
        ("infinite", None),
    ],
)
def test_every_form_of_a_time_is_read(text: str, seconds: int | None) -> None:
    assert slurm_seconds("--time", text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "1:2:3:4", "-5", "1-", "1h", "99999-00", "0:00", "٣", "1" * 50])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="--time"):
        slurm_seconds("--time", text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4000", 4000 * 2**20), ("4G", 2**32), ("512k", 512 * 2**10), ("1T", 2**40), ("2GB", 2**31), ("0", 0)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert slurm_bytes("--mem", text) == size


@given(st.text(max_size=30))
def test_no_text_does_harm(text: str) -> None:
    for read in (slurm_seconds, slurm_bytes):
        try:
            read("--x", text)
        except BadRequest as error:
            assert str(error).isprintable()
