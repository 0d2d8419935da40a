"""Go's classic math/rand, whose seeds are part of published experiments: `stromboli simulate --sequence go`.

It is an additive lagged Fibonacci generator, x[n] = x[n-607] + x[n-273] modulo 2^64. Its state is filled from a seed by
a Lehmer generator, combined with the state that the same generator reaches, from a simpler filling of seed 1, after
7.8e12 steps. Go carries those 607 numbers as a table. Here they are computed, in some 30 ms: n steps are x^n modulo
the recurrence's polynomial, which takes some 43 squarings.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

LENGTH = 607
TAP = 273
STEPS = 7_800_000_000_000
"""How far Go's table lies from its beginning."""
_LEHMER = 48271
_MERSENNE = 2**31 - 1
_DISCARDED = 20
_IN_PLACE_OF_ZERO = 89482311
_MASK_63 = 2**63 - 1
_MASK_64 = 2**64 - 1


class GoRandom:
    """A source and the methods of `rand.Rand` that experiments use."""

    def __init__(self, seed: int) -> None:
        state = _filled(seed, (40, 20, 0)) ^ _table()
        self._state = [int(word) for word in state]
        self._tap = 0
        self._feed = LENGTH - TAP

    def uint64(self) -> int:
        self._tap = (self._tap or LENGTH) - 1
        self._feed = (self._feed or LENGTH) - 1
        word = (self._state[self._feed] + self._state[self._tap]) & _MASK_64
        self._state[self._feed] = word
        return word

    def int63(self) -> int:
        return self.uint64() & _MASK_63

    def intn(self, bound: int) -> int:
        """A number below the bound, which is at most 2^31 - 1: what would be unequally likely is drawn again."""
        if not 0 < bound <= _MERSENNE:
            raise ValueError(f"{bound} is not from 1 to {_MERSENNE}")
        if bound & (bound - 1) == 0:
            return (self.int63() >> 32) & (bound - 1)
        most = 2**31 - 1 - 2**31 % bound
        while (drawn := self.int63() >> 32) > most:
            pass
        return drawn % bound

    def float64(self) -> float:
        """A number below 1; what is rounded to 1 is drawn again."""
        while (drawn := self.int63() / 2**63) == 1:
            pass
        return drawn

    def perm(self, count: int) -> list[int]:
        """A permutation, by inserting one number after the other."""
        order = [0] * count
        for number in range(count):
            place = self.intn(number + 1)
            order[number] = order[place]
            order[place] = number
        return order

    def shuffled(self, count: int) -> list[int]:
        """The numbers below the count as `Shuffle` leaves a list of them."""
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self._scaled(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def _scaled(self, bound: int) -> int:
        """A number below the bound, by multiplication of 32 bits instead of a remainder, as `Shuffle` draws it."""
        product = (self.int63() >> 31) * bound
        if product & 0xFFFFFFFF < bound:
            threshold = (2**32 - bound) % bound
            while product & 0xFFFFFFFF < threshold:
                product = (self.int63() >> 31) * bound
        return product >> 32


class AuthorsSequence:
    """The order in which the simulator of the FGD paper takes pods and nodes, by its seed.

    It logs a number before it shuffles, and draws ten more before it ranks nodes.
    """

    def __init__(self, seed: int) -> None:
        self._random = GoRandom(seed)
        self._random.int63()

    def shuffled(self, count: int) -> list[int]:
        return self._random.shuffled(count)

    def below(self, bound: int) -> int:
        return self._random.intn(bound)

    def ranks(self, count: int) -> list[int]:
        for _ in range(10):
            self._random.float64()
        return self._random.perm(count)


def _filled(seed: int, shifts: tuple[int, int, int]) -> Words:
    """A state from a seed: each word of three numbers of a Lehmer generator, shifted so far."""
    number = seed % _MERSENNE or _IN_PLACE_OF_ZERO
    for _ in range(_DISCARDED):
        number = number * _LEHMER % _MERSENNE
    words = []
    for _ in range(LENGTH):
        word = 0
        for shift in shifts:
            number = number * _LEHMER % _MERSENNE
            word ^= number << shift
        words.append(word & _MASK_64)
    return np.array(words, dtype=np.uint64)


@lru_cache(maxsize=1)
def _table() -> Words:
    """The state of the generator, filled in the simpler way from seed 1, after all those steps."""
    return _advanced(_filled(1, (20, 10, 0)), STEPS)


def _advanced(state: Words, steps: int) -> Words:
    """The state after so many steps.

    The words of a state are the last 607 numbers: the feed goes down from 333, so number k of them lies at 333 - k.
    """
    start = LENGTH - TAP - 1
    at = [(start - k) % LENGTH for k in range(LENGTH)]
    numbers = state[at]
    power = _power_of_x(steps)
    ahead = np.empty(LENGTH, dtype=np.uint64)
    for k in range(LENGTH):
        ahead[k] = (power * numbers).sum(dtype=np.uint64)
        numbers = np.append(numbers[1:], numbers[0] + numbers[LENGTH - TAP])
    advanced = np.empty(LENGTH, dtype=np.uint64)
    advanced[[(start - steps - k) % LENGTH for k in range(LENGTH)]] = ahead
    return advanced


def _power_of_x(exponent: int) -> Words:
    """x^exponent modulo x^607 - x^334 - 1, the coefficients modulo 2^64."""
    power = np.zeros(LENGTH, dtype=np.uint64)
    power[0] = 1
    for bit in bin(exponent)[2:]:
        power = _reduced(np.convolve(power, power))
        if bit == "1":
            power = _reduced(np.append(np.uint64(0), power))
    return power


def _reduced(product: Words) -> Words:
    """A product of polynomials, with x^607 replaced by x^334 + 1 as long as there is one."""
    while len(product) > LENGTH:
        high, product = product[LENGTH:], product[:LENGTH].copy()
        product = np.append(product, np.zeros(max(0, len(high) + LENGTH - TAP - LENGTH), dtype=np.uint64))
        product[: len(high)] += high
        product[LENGTH - TAP : LENGTH - TAP + len(high)] += high
    return product
