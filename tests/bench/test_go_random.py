"""Go's classic generator, against numbers that every Go program with these seeds prints."""

from itertools import islice

import numpy as np
import pytest

from bench.go_random import LENGTH, TAP, AuthorsSequence, GoRandom, _advanced, _filled
from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate import authors_sequence


def test_the_first_numbers_of_seed_1_are_those_of_go():
    assert [GoRandom(1).int63() for _ in range(1)] == [5577006791947779410]
    random = GoRandom(1)
    drawn = [random.int63() for _ in range(4)]
    assert drawn[1:] == [8674665223082153551, 6129484611666145821, 4037200794235010051]
    random = GoRandom(1)
    assert [random.intn(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]
    assert GoRandom(1).float64() == pytest.approx(0.6046602879796196)


@pytest.mark.parametrize("steps", [0, 1, 333, 607, 1000])
def test_the_jump_ahead_is_as_many_steps(steps):
    words = [int(word) for word in _filled(7, (20, 10, 0))]
    tap, feed = 0, LENGTH - TAP
    for _ in range(steps):
        tap, feed = (tap - 1) % LENGTH, (feed - 1) % LENGTH
        words[feed] = (words[feed] + words[tap]) % 2**64
    assert np.array_equal(_advanced(_filled(7, (20, 10, 0)), steps), np.array(words, dtype=np.uint64))


def test_permutations_hold_every_number_once():
    for count in (1, 2, 7, 100):
        assert sorted(GoRandom(3).perm(count)) == sorted(GoRandom(3).shuffled(count)) == list(range(count))


def test_negative_and_large_seeds_are_taken_modulo_and_0_has_a_number_of_its_own():
    def some(seed):
        random = GoRandom(seed)
        return list(islice(iter(random.int63, None), 3))

    assert some(-1) == some(2**31 - 2)
    assert some(0) == some(2**31 - 1) == some(89482311)
    with pytest.raises(ValueError, match="0 is not from 1"):
        GoRandom(1).intn(0)


def test_the_authors_draw_a_number_first_and_ten_before_the_ranks():
    sequence, random = AuthorsSequence(42), GoRandom(42)
    random.int63()
    assert sequence.shuffled(5) == random.shuffled(5)
    assert sequence.below(7) == random.intn(7)
    for _ in range(10):
        random.float64()
    assert sequence.ranks(9) == random.perm(9)


def test_the_command_takes_the_generator_of_the_checkout_and_says_where_it_is_missing(monkeypatch, tmp_path):
    assert authors_sequence.authors_sequence(42).shuffled(5) == AuthorsSequence(42).shuffled(5)
    monkeypatch.setattr(authors_sequence, "_GENERATOR", tmp_path / "bench" / "go_random.py")
    with pytest.raises(Usage, match="comes with a checkout"):
        authors_sequence.authors_sequence(42)
