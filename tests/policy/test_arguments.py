"""Arguments are typed, checked, and explain themselves when they are wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.manifests.yaml_lines import read_yaml
from stromboli.policy.arguments import arg, arg_map, arg_prefix, declared, parse_arguments
from stromboli.policy.policy_problems import Severity


def not_negative(value: float) -> str | None:
    return "must not be negative" if value < 0 else None


@dataclass(frozen=True, slots=True)
class Strategy:
    type: Literal["MostAllocated", "LeastAllocated"] = arg("type", "LeastAllocated", "How to fill nodes.")
    weight: int = arg("weight", 1, "How much it counts.")


@dataclass(frozen=True, slots=True)
class Sra:
    enable: bool = arg("enable", False, "Whether to keep special nodes free.")
    weights: Mapping[str, int] = arg_map("resourceWeight", {}, "Weight per resource.")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of every kind."""

    weight: int = arg("fit.weight", 1, "How much the whole score counts.", check=not_negative)
    factor: float = arg("fit.factor", 1.2, "How much to overcommit.")
    cache: bool = arg("predicateErrorCacheEnable", True, "Whether.", aliases=["enablePredicateErrorCache"])
    period: str = arg("fit.period", "1m", "How often.")
    names: str = arg("fit.resources", "", "A comma list.")
    weights: Mapping[str, int] = arg_prefix(
        "fit.resources.", 1, "Weight of one resource.", check=not_negative
    )
    strategies: Mapping[str, Strategy] = arg_map("strategies", {"cpu": Strategy()}, "Per resource.")
    sra: Sra = arg_map("sra", Sra(), "Special resources apart.")
    steps: tuple[Strategy, ...] = arg("steps", (), "In order.")
    cpu: int | str = arg("cpu", 250, "Milli-CPU or a quantity.")
    anything: Any = arg("anything", None, "Whatever.")


def parse(text: str) -> tuple[Arguments, list[str]]:
    arguments, problems = parse_arguments(Arguments, read_yaml(text).root)
    return arguments, [problem.at("f") for problem in problems]


def test_nothing_given_means_defaults() -> None:
    assert parse("{}") == (Arguments(), [])


def test_every_kind_of_argument_is_read() -> None:
    arguments, problems = parse("""
fit.weight: 5
fit.factor: 2
predicateErrorCacheEnable: "F"
fit.resources: nvidia.com/gpu
fit.resources.nvidia.com/gpu: 7
strategies:
  nvidia.com/*: {type: MostAllocated, weight: 2}
sra:
  enable: yes
  resourceWeight: {nvidia.com/gpu: 3}
steps:
- weight: 4
cpu: 200m
anything: [1, {a: b}]
""")
    assert problems == []
    assert (arguments.weight, arguments.factor, arguments.cache) == (5, 2.0, False)
    assert type(arguments.factor) is float
    assert (arguments.names, arguments.weights) == ("nvidia.com/gpu", {"nvidia.com/gpu": 7})
    assert arguments.strategies == {"nvidia.com/*": Strategy("MostAllocated", 2)}
    assert arguments.sra == Sra(True, MappingProxyType({"nvidia.com/gpu": 3}))
    assert arguments.steps == (Strategy(weight=4),)
    assert (arguments.cpu, arguments.anything) == ("200m", [1, {"a": "b"}])


def test_a_name_that_was_not_given_has_the_default_of_its_prefix() -> None:
    arguments, _ = parse("fit.resources.a: 7")
    assert (arguments.weights["a"], arguments.weights["b"], list(arguments.weights)) == (7, 1, ["a"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('fit.weight: "5"', 'f:1: fit.weight: needs an integer, got the string "5"'),
        ("fit.weight: 5.0", "f:1: fit.weight: needs an integer, got 5.0"),
        ("fit.weight: true", "f:1: fit.weight: needs an integer, got true"),
        ("fit.weight:", "f:1: fit.weight: needs an integer, got nothing"),
        ("fit.weight: 9999999999999999999", "f:1: fit.weight: needs an integer, got 9999999999999999999"),
        ("\nfit.factor: high", 'f:2: fit.factor: needs a number, got the string "high"'),
        ("fit.factor: .nan", "f:1: fit.factor: needs a number, got nan"),
        ("predicateErrorCacheEnable: 1", "f:1: predicateErrorCacheEnable: needs a boolean, got 1"),
        ("fit.period: 5", "f:1: fit.period: needs a string, got 5"),
        ("fit.period: {a: 1}", "f:1: fit.period: needs a string, got a mapping"),
        ("fit.resources.a: b", 'f:1: fit.resources.a: needs an integer, got the string "b"'),
        ("cpu: 1.5", "f:1: cpu: needs an integer or a string, got 1.5"),
        ("sra: 5", "f:1: sra: needs a mapping, got 5"),
        ("steps: 5", "f:1: steps: needs a list of mappings, got 5"),
        ("sra:\n  enabled: true", 'f:2: unknown argument "sra.enabled"; did you mean "enable"?'),
        ("fit.wieght: 5", 'f:1: unknown argument "fit.wieght"; did you mean "fit.weight"?'),
        ("FIT.WEIGHT: 5", 'f:1: unknown argument "FIT.WEIGHT"; did you mean "fit.weight"?'),
    ],
)
def test_a_wrong_argument_is_named_and_keeps_its_default(text: str, message: str) -> None:
    arguments, problems = parse(text)
    assert problems == [message]
    assert arguments == Arguments(weights=arguments.weights)
    assert set(arguments.weights.values()) <= {1}


def test_a_wrong_entry_of_a_mapping_is_left_out_and_the_others_stay() -> None:
    arguments, problems = parse("strategies:\n  a: 5\n  b: {type: Most, weight: 3}")
    assert arguments.strategies == {"b": Strategy(weight=3)}
    assert problems == [
        "f:2: strategies.a: needs a mapping, got 5",
        'f:3: strategies.b.type: needs one of "MostAllocated", "LeastAllocated", got the string "Most"',
    ]


def test_the_right_key_wins_over_its_alias() -> None:
    assert parse("enablePredicateErrorCache: false")[0].cache is False
    assert parse("enablePredicateErrorCache: false\npredicateErrorCacheEnable: true")[0].cache is True


def test_a_value_that_fails_its_check_is_a_warning_and_the_default_is_used() -> None:
    arguments, (weight_warning, resource_warning) = parse_arguments(
        Arguments, {"fit.weight": -1, "fit.resources.a": -2}
    )
    assert (arguments.weight, arguments.weights["a"]) == (1, 1)
    assert weight_warning.message == "fit.weight: must not be negative, got -1; the default is used"
    assert {weight_warning.severity, resource_warning.severity} == {Severity.WARNING}


def test_a_class_says_what_it_takes() -> None:
    by_field = {argument.field: argument for argument in declared(Arguments)}
    assert by_field["weights"].spelling == "fit.resources.<name>"
    assert by_field["weights"].type_name == "an integer"
    assert by_field["strategies"].type_name == "a mapping of names to mappings"
    assert (by_field["weight"].default, by_field["weight"].doc) == (1, "How much the whole score counts.")


@dataclass(frozen=True, slots=True)
class Bare:
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Odd:
    weight: set[int] = arg("weight", frozenset(), "A set is nothing that YAML has.")


@pytest.mark.parametrize("cls", [Bare, Odd, int])
def test_a_wrong_declaration_is_refused(cls: type) -> None:
    with pytest.raises(TypeError, match=r"Bare\.weight|Odd\.weight|dataclass"):
        declared(cls)


@dataclass(frozen=True, slots=True)
class Window:
    low: int = arg("low", 0, "From.")
    high: int = arg("high", 100, "To.")

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low {self.low} lies above high {self.high}")


def test_arguments_that_do_not_go_together_are_a_problem() -> None:
    window, (problem,) = parse_arguments(Window, {"low": 5, "high": 3})
    assert (window, problem.message) == (Window(), "arguments: low 5 lies above high 3")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from([argument.key for argument in declared(Arguments)]) | st.text(max_size=8)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_anything_at_all_gives_arguments_and_the_same_ones_each_time(values: dict[str, object]) -> None:
    first, second = parse_arguments(Arguments, values), parse_arguments(Arguments, values)
    assert repr(first) == repr(second)
    assert isinstance(first[0].weight, int)
