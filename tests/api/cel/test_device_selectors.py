"""Selectors of devices: what Kubernetes documents of them, and that none can take long."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.cel.device_selectors import MAX_SELECTOR, compiled_selector, device_value
from stromboli.api.cel.expression import CelError, EvaluationError
from stromboli.api.cel.values import version
from stromboli.api.types.devices import Device, DeviceAttribute, DeviceCapacity

DRIVER = "dra.example.com"
ATTRIBUTES = {
    "bool": DeviceAttribute(bool_value=True),
    "int": DeviceAttribute(int_value=1),
    "string": DeviceAttribute(string_value="some_example_value"),
    "version": DeviceAttribute(version_value="1.10.0"),
    "ints": DeviceAttribute(int_values=(1, 2)),
    "versions": DeviceAttribute(version_values=("1.0.0", "2.0.0")),
    "other.example.com/name": DeviceAttribute(string_value="fish"),
}
DEVICE = Device(name="d", attributes=ATTRIBUTES, capacity={"memory": DeviceCapacity(value="1Mi")})
OWN, CAPACITY = f'device.attributes["{DRIVER}"]', f'device.capacity["{DRIVER}"]'


def outcome(expression: str, device: Device = DEVICE) -> Any:
    return compiled_selector(expression).matches(device_value(DRIVER, device))


TRUE = [
    "true",
    f'device.driver == "{DRIVER}"',
    f"{OWN}.bool",
    f'{OWN}["bool"]',
    f"{OWN}.int > 0",
    f'{OWN}.string == "some_example_value"',
    f'{OWN}.string.split("example").size() >= 2',
    f'{OWN}.string.matches("^some_.*")',
    'device.attributes["other.example.com"].name == "fish"',
    f'"{DRIVER}" in device.attributes',
    '!("no-such-domain" in device.attributes)',
    f'!("name" in {OWN})',
    '!("name" in device.attributes["no-such-domain"])',
    '!has(device.attributes["no-such-domain"].name)',
    f"has({OWN}.int) && {OWN}.int == 1",
    f'device.attributes.exists_one(x, x == "{DRIVER}")',
    f'{OWN}.exists_one(x, x == "version")',
    f'device.capacity.exists_one(x, x == "{DRIVER}")',
    f"cel.bind(dra, {OWN}, dra.bool && dra.int == 1)",
    'cel.bind(all, device.attributes, !has(all["no-such-domain"].name))',
    f'{OWN}.version.isGreaterThan(semver("1.9.0"))',
    f'{OWN}.version.compareTo(semver("1.10.0")) == 0',
    f'{OWN}.version.compareTo(semver("1.10.0+build")) == 0',
    f'{OWN}.version.isGreaterThan(semver("1.10.0-rc.1"))',
    f'{OWN}.version.isLessThan(semver("v1.11", true))',
    f"{OWN}.version.major() == 1 && {OWN}.version.minor() == 10 && {OWN}.version.patch() == 0",
    'isSemver("1.0.0") && !isSemver("v1.0") && isSemver("v1.0", true) && !isSemver("200K")',
    f'{CAPACITY}.memory.isGreaterThan(quantity("1Ki"))',
    f'{CAPACITY}.memory.compareTo(quantity("1Mi")) >= 0',
    f'{CAPACITY}.memory == quantity("1024Ki")',
    f'!("name" in {CAPACITY}) || {CAPACITY}.name.isGreaterThan(quantity("1Ki"))',
    "device.allowMultipleAllocations == false",
    f"{OWN}.ints.exists(x, x > 1)",
    f"2 in {OWN}.ints",
    f"{OWN}.ints.includes(2) && !{OWN}.ints.includes(3) && {OWN}.int.includes(1)",
    f'{OWN}.versions.all(x, x.isGreaterThan(semver("0.0.1")))',
]


@pytest.mark.parametrize("expression", TRUE)
def test_what_is_true_of_a_device(expression: str) -> None:
    assert outcome(expression) is True


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ('device.attributes["no-such-domain"].name == 1', "no such key: name"),
        (f'{OWN}["name"].isGreaterThan(quantity("0"))', "no such key: name"),
        (f"{OWN}.int.exists(x, x > 0)", "no such overload|iterable|comprehension"),
        (f"{OWN}.string", "no such overload"),
        ('semver("200K").major() == 1', "invalid semantic version"),
        (f"{OWN}.int.major() == 1", "no such overload"),
    ],
)
def test_what_has_no_value_for_a_device(expression: str, problem: str) -> None:
    with pytest.raises(EvaluationError, match=problem):
        outcome(expression)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("?!", "Syntax error"),
        ("1", "must evaluate to a bool"),
        ("device.model == 'a'", "undefined field 'model'"),
        ("pod.name == 'a'", "undeclared reference to 'pod'"),
        ("true" + " " * MAX_SELECTOR, f"at most {MAX_SELECTOR} bytes"),
        (f"{OWN}.string.matches({OWN}.string)", "must be a literal"),
    ],
)
def test_what_is_no_selector(expression: str, problem: str) -> None:
    with pytest.raises(CelError, match=problem):
        compiled_selector(expression)


TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


@pytest.mark.parametrize(
    "expression",
    [
        "".join(f"{TEN}.all(x{level}, " for level in range(7)) + "true" + ")" * 7,
        "".join(f"{OWN}.string.split('').map(x{level}, " for level in range(5))
        + "1"
        + ")" * 5
        + ".size() > 0",
        "".join(f"cel.bind(a{level + 1}, a{level} + a{level}, " for level in range(40)).join(
            ["cel.bind(a0, 'aaaaaaaaaa', ", "a40.size() > 0)"]
        )
        + ")" * 40,
    ],
)
def test_an_expression_that_explodes_is_stopped(expression: str) -> None:
    with pytest.raises((EvaluationError, CelError)):
        outcome(expression)


def test_an_attribute_without_a_known_value_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="attribute x: unsupported attribute value"):
        outcome("true", Device(attributes={"x": DeviceAttribute()}))


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        (f"{OWN}.a && {OWN}['b']", {("attributes", DRIVER, "a"), ("attributes", DRIVER, "b")}),
        (
            f"cel.bind(dra, {OWN}, has(dra.a) && 'b' in dra)",
            {("attributes", DRIVER, "a"), ("attributes", DRIVER, "b")},
        ),
        ("device.driver == 'a'", set()),
        ("device.attributes[device.driver].a", None),
        (f"{OWN}.size() > 1", None),
        ('device.?attributes["a"].?x.orValue("") == "y"', None),
        ("device.attributes.size() > 1", None),
    ],
)
def test_it_is_known_what_a_selector_reads(expression: str, reads: set[Any] | None) -> None:
    assert compiled_selector(expression).reads == reads


VERSIONS = (
    "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 "
    "1.0.0-rc.1 1.0.0 1.2.0 1.10.0"
)


def test_versions_order_as_semver_says() -> None:
    versions = [version(text) for text in VERSIONS.split()]
    assert versions == sorted(versions)
    assert len(set(versions)) == len(versions)


@pytest.mark.parametrize(
    "text", ["1.0", "01.0.0", "1.0.0-01", "1.0.0-", "v1.0.0", "1.0.0+", "99999999999999999999.0.0"]
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match=r"semantic version|64 bits"):
        version(text)
