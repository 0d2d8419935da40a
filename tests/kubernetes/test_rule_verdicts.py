"""The real API server as the oracle of patterns and validation rules: the same CRDs and objects are refused."""

from __future__ import annotations

import json
import re
import time
import urllib.error
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from stromboli.api.schemas.crd_schemas import SchemaError, from_crd
from stromboli.api.schemas.normalization import normalize
from stromboli.api.schemas.validation_rules import rule_problems
from tests.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.real_only

Json = Any
GROUP = "rules.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OBJECTS = f"/apis/{GROUP}/v1/namespaces/default/checks"
TEXT = {"type": "string", "maxLength": 20}
KEYED = {
    "type": "array",
    "maxItems": 5,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": TEXT, "value": {"type": "integer"}},
        "x-kubernetes-validations": [
            {"rule": "self.value >= oldSelf.value", "message": "keyed-transition"},
            {"rule": "self.value < 4", "message": "keyed"},
        ],
    },
}
PROPERTIES: dict[str, Json] = {
    "a": {"type": "integer"},
    "b": TEXT,
    "d": {"type": "number"},
    "l": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
    "s": {"type": "array", "maxItems": 5, "items": TEXT, "x-kubernetes-list-type": "set"},
    "m": {"type": "object", "maxProperties": 5, "additionalProperties": TEXT},
    "t": {"type": "boolean"},
    "n": {"type": "string", "maxLength": 20, "nullable": True},
    "keyed": KEYED,
    "namespace": TEXT,
    "dash-ed": TEXT,
    "port": {"x-kubernetes-int-or-string": True, "maxLength": 20},
    "when": {"type": "string", "format": "date-time"},
    "wait": {"type": "string", "format": "duration"},
    "data": {"type": "string", "format": "byte", "maxLength": 40},
    "q": TEXT,
    "host": {"type": "string", "maxLength": 40},
    "inner": {"type": "object", "properties": {"a": {"type": "integer"}, "b": TEXT}},
    "default": {"type": "integer", "default": 3},
    "none": {
        "type": "object",
        "nullable": True,
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}},
        "x-kubernetes-validations": [{"rule": "self.a > self.b", "message": "nullable"}],
    },
    "maps": {
        "type": "object",
        "maxProperties": 5,
        "additionalProperties": {
            "type": "object",
            "properties": {"v": {"type": "integer"}},
            "x-kubernetes-validations": [
                {"rule": "self.v >= oldSelf.v", "message": "map-transition"},
                {"rule": "self.v < 3", "message": "map-value"},
            ],
        },
    },
}
RULES = [
    "self.a > 2",
    "!has(self.a) || self.a % 2 == 0",
    "has(self.b) ? self.b.startsWith('a') : true",
    "self.b.matches('^(a|aa)+$')",
    "self.b.size() < 4 || self.b.contains('b')",
    "self.b.lowerAscii() == self.b && self.b.indexOf('c') < 2",
    "self.b.split('b').size() == 2",
    "self.b.replace('a', 'bb') != 'bbb'",
    "'%s-%d'.format([self.b, self.a]) != 'a-3'",
    "self.d + 1.0 > 2.0 && self.d != 3.0",
    "self.a > self.d",
    "self.l.all(x, x > 0)",
    "self.l.exists(x, x == self.a)",
    "self.l.exists_one(x, x == 2)",
    "self.l.map(x, x * 2).filter(x, x > 2).size() > 0",
    "self.l.all(i, x, i <= x)",
    "self.l.sort() == self.l",
    "self.l[0] < self.l[1]",
    "self.l == [1, 2]",
    "sets.contains(self.s, ['a', 'b'])",
    "self.s.all(x, x in ['a', 'b', 'c'])",
    "'a' in self.m && self.m['a'] == 'a'",
    "self.m.all(k, k == self.m[k])",
    "self.m.a.size() > 0",
    "self.t || self.a == 1",
    "!has(self.n) || self.n != 'a'",
    "self.?b.orValue('a') == 'a'",
    "self.inner.?a.hasValue() && self.inner.a == 2",
    "has(self.inner.b) == has(self.b)",
    "self.__namespace__ != self.dash__dash__ed && self.namespace == self.__namespace__",
    "type(self.port) == int ? self.port > 1 : self.port != 'a'",
    "self.when > timestamp('2024-01-01T00:00:00Z') && self.when.getFullYear() == 2024",
    "self.wait >= duration('1h30m')",
    "self.data == b'hi'",
    "self.keyed.all(x, x.name != 'c')",
    "size(self.keyed) < 2 || self.keyed[0].name == 'a'",
    "self.a >= oldSelf.a",
    "self.s == oldSelf.s",
    "self.keyed == oldSelf.keyed",
    "!has(oldSelf.b) || has(self.b)",
    "self.inner == oldSelf.inner",
    "self.l[0] / self.a > 0",
    "self.b + 'x' != 'ax'",
    "int(self.d) < 3",
    "self.a in self.l || self.b in self.s",
    "quantity(self.q).isGreaterThan(quantity('1500m'))",
    "!isQuantity(self.q) || quantity(self.q).compareTo(quantity('1Ki')) < 0",
    "isQuantity(self.q) && quantity(self.q).add(quantity('500m')).isLessThan(quantity('2'))",
    "quantity(self.q) == quantity('1024')",
    "isIP(self.host) ? ip(self.host).family() == 4 : isCIDR(self.host)",
    "isIP(self.host) && cidr('10.0.0.0/8').containsIP(self.host) && !ip(self.host).isLoopback()",
    "isCIDR(self.host) && cidr(self.host).prefixLength() > 8 && cidr(self.host).masked() == cidr(self.host)",
    "ip(self.host).isGlobalUnicast() && ip.isCanonical(self.host)",
    "self.b.find('b+') != 'b'",
    "self.l.sum() > 3 && self.l.isSorted()",
    "self.l.max() > 2 || self.l.min() == 0",
    "has(self.n) || self.default == 3",
    "has(self.none) != has(self.maps)",
    "self.?none.a.orValue(2) == 2",
    "self.default == oldSelf.default",
    "self.maps == oldSelf.maps",
    "self.maps.exists(k, self.maps[k].v == 2)",
    "self.port == 0 || self.port == 'a'",
    "self.l == oldSelf.l || self.m == oldSelf.m",
    "string(self.d) == '3' || string(self.a) == '3' || string(self.t) == 'true'",
    "self.d / 2.0 == 1.5 || double(self.a) / 2.0 == 1.5 || self.a / 2 == 1",
    "self.b < 'b' || self.b.charAt(1) == 'b' || self.b.substring(1) == 'a'",
    "self.when - timestamp('2024-01-01T00:00:00Z') > self.wait || self.when.getHours('+05:30') == 15",
]
OPTIONAL_OLD = "oldSelf.hasValue() ? self.a == oldSelf.value().a + 1 : self.a == 1"


def definition(spec: Json) -> Json:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "checks", "singular": "check", "kind": "Check", "listKind": "CheckList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"checks.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def spec_with(*rules: Json) -> Json:
    return {"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": list(rules)}


FULL = spec_with(
    *({"rule": rule, "message": f"rule-{index}"} for index, rule in enumerate(RULES)),
    {"rule": OPTIONAL_OLD, "optionalOldSelf": True, "message": "optional-old"},
)
SCHEMA = from_crd(definition(FULL)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def causes(plane: ControlPlane, method: str, path: str, body: Json) -> list[Json]:
    """Why the real server refuses a request that changes nothing; empty if it does not."""
    try:
        plane.request(method, f"{path}?dryRun=All", body)
    except urllib.error.HTTPError as refusal:
        with refusal:
            answer = json.loads(refusal.read())
        assert answer["code"] == 422, answer["message"]
        return list(answer["details"]["causes"])
    return []


PATTERNS = [
    "^(a|aa)+$",
    "(",
    "[a",
    "a**",
    "*a",
    "a{1001}",
    "(?=a)",
    r"\1",
    r"\C",
    "[[:alpha:]]+",
    r"\pL",
    r"\Z",
    "(?i)a",
    "a)",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_refused_with_the_same_words(plane: ControlPlane, pattern: str) -> None:
    crd = definition({"type": "string", "pattern": pattern})
    theirs = [cause["message"] for cause in causes(plane, "POST", DEFINITIONS, crd)]
    try:
        from_crd(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        ours = []
    except SchemaError as error:
        ours = [problem.message for problem in error.problems]
    assert ours == theirs[: len(ours)]
    assert bool(ours) == bool(theirs)


DEFINED: list[Json] = [
    {"rule": "self.a > 0"},
    {"rule": ""},
    {"rule": "self.a >"},
    {"rule": "self.zz == 1"},
    {"rule": "self.keyed.all(x, x.zz == 1)"},
    {"rule": "self.a + 1"},
    {"rule": "self.b.foo()"},
    {"rule": "self.namespace == 'a'"},
    {"rule": "self.a == oldSelf.a", "optionalOldSelf": True},
    {"rule": "oldSelf.hasValue() || self.a == 0", "optionalOldSelf": True},
    {"rule": "true", "optionalOldSelf": True},
    {"rule": "true", "fieldPath": ".inner.a"},
    {"rule": "true", "fieldPath": ".inner.zz"},
    {"rule": "true", "reason": "FieldValueForbidden"},
    {"rule": "true", "reason": "Else"},
    {"rule": "true", "message": "a\nb"},
    {"rule": "true", "messageExpression": "self.b"},
    {"rule": "true", "messageExpression": "self.a > 1"},
    {"rule": "self.b.matches('(')"},
]
OURS_IS_LENIENT = ({"rule": "self.a == oldSelf.a", "optionalOldSelf": True},)
"""Errors of type that we find only when an object meets the rule."""


@pytest.mark.parametrize("rule", DEFINED, ids=json.dumps)
def test_a_definition_is_refused_on_both(plane: ControlPlane, rule: Json) -> None:
    crd = definition(spec_with(rule))
    theirs = causes(plane, "POST", DEFINITIONS, crd)
    try:
        from_crd(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        refused = False
    except SchemaError as error:
        refused = True
        fields = {cause["field"] for cause in theirs}
        assert {f"spec.validation.{problem.field}" for problem in error.problems} & fields
    assert refused == bool(theirs) or (rule in OURS_IS_LENIENT and not refused)


@pytest.fixture(scope="module")
def checked(plane: ControlPlane) -> Iterator[ControlPlane]:
    """The real server with the kind that has all rules."""
    plane.apply(definition(FULL))
    plane.kubectl("wait", "--for=condition=Established", f"crd/checks.{GROUP}")
    yield plane
    plane.kubectl("delete", "crd", f"checks.{GROUP}")


HOSTS = [
    *(
        "10.1.2.3",
        "11.0.0.1",
        "127.0.0.1",
        "::1",
        "2001:db8::1",
        "2001:DB8:0::1",
        "010.0.0.1",
        "::ffff:10.0.0.1",
    ),
    *(
        "10.0.0.0/8",
        "10.1.2.3/16",
        "10.0.0.0/33",
        "fe80::/64",
        "10.0.0.0/08",
        "host",
        "255.255.255.255",
        "fe80::1%a",
    ),
]


def random_spec(random: Random) -> Json:
    letters = ["a", "b", "c", "aa", "ab", "A", "abcd"]

    def some(values: list[Json]) -> list[Json]:
        return [random.choice(values) for _ in range(random.randint(0, 3))]

    spec = {
        "a": random.randint(0, 4),
        "b": random.choice(letters),
        "d": random.choice([0.5, 1, 2.5, 3, -1.25]),
        "l": some([0, 1, 2, 3]),
        "s": sorted(set(some(letters)), key=lambda _: random.random()),
        "m": {random.choice(letters): random.choice(letters) for _ in range(random.randint(0, 2))},
        "t": random.random() < 0.5,
        "n": random.choice(["a", "b", None]),
        "keyed": [
            {"name": name, "value": random.randint(0, 4)}
            for name in random.sample(["a", "b", "c"], random.randint(0, 3))
        ],
        "namespace": random.choice(letters),
        "dash-ed": random.choice(letters),
        "port": random.choice([0, 2, "a", "http"]),
        "when": random.choice(
            ["2024-05-01T10:00:00Z", "2024-01-01T01:30:00.25+02:00", "2025-01-01T00:00:00Z"]
        ),
        "wait": random.choice(["1h30m", "90m", "1h29m59.999999999s", "2h"]),
        "data": random.choice(["aGk=", "aG8="]),
        "q": random.choice(["1", "2", "1Ki", "1024", "0.5", "1.5k", "-1", "x", "1e3", "100n"]),
        "host": random.choice(HOSTS),
        "inner": random.choice([{}, {"a": 2}, {"a": 1, "b": "x"}]),
        "default": random.choice([3, 4]),
        "none": random.choice([None, {}, {"a": 2}, {"a": 2, "b": 3}]),
        "maps": {name: {"v": random.randint(0, 3)} for name in some(["a", "b", "c.d"])},
    }
    return {key: value for key, value in spec.items() if random.random() < 0.85}


def verdicts(all_causes: list[Json]) -> set[str]:
    """The rules that do not hold, by field and message."""
    return {
        f"{cause['field']} {found[0]}"
        for cause in all_causes
        if (
            found := re.search(
                r"(rule-\d+|keyed-transition|keyed|optional-old|nullable|map-transition|map-value)$",
                cause["message"],
            )
        )
    }


def ours(new: Json, old: Json | None) -> set[str]:
    assert normalize(new, SCHEMA).problems == []
    return verdicts([problem.cause() for problem in rule_problems(new, old, SCHEMA)])


def check(spec: Json, **metadata: Json) -> Json:
    kind = {"apiVersion": f"{GROUP}/v1", "kind": "Check"}
    return {**kind, "metadata": {"name": "x", "namespace": "default", **metadata}, "spec": spec}


@pytest.mark.parametrize("seed", range(8))
def test_the_same_rules_hold_for_random_objects(checked: ControlPlane, seed: int) -> None:
    random = Random(seed)
    for _ in range(8):
        body = check(random_spec(random))
        theirs = verdicts(causes(checked, "POST", OBJECTS, body))
        assert ours(body, None) == theirs, body["spec"]
        assert theirs


def test_the_same_rules_hold_for_random_updates(checked: ControlPlane) -> None:
    """Objects from before the rules: the definition gets them when the objects are there."""
    random = Random(1)
    checked.apply(definition({"type": "object", "properties": PROPERTIES_WITHOUT_RULES}))
    names = [f"u{number}" for number in range(12)]
    for name in names:
        checked.request("POST", OBJECTS, check(random_spec(random), name=name))
    checked.apply(definition(FULL))
    _wait_for_rules(checked)
    for name in names:
        old = json.loads(checked.request("GET", f"{OBJECTS}/{name}"))
        for _ in range(4):
            spec = {**old["spec"], **random_spec(random)}
            body = check(spec, name=name, resourceVersion=old["metadata"]["resourceVersion"])
            theirs = verdicts(causes(checked, "PUT", f"{OBJECTS}/{name}", body))
            assert ours(body, old) == theirs, (old["spec"], body["spec"])


PROPERTIES_WITHOUT_RULES: dict[str, Json] = json.loads(json.dumps(PROPERTIES))
del PROPERTIES_WITHOUT_RULES["keyed"]["items"]["x-kubernetes-validations"]
del PROPERTIES_WITHOUT_RULES["none"]["x-kubernetes-validations"]
del PROPERTIES_WITHOUT_RULES["maps"]["additionalProperties"]["x-kubernetes-validations"]


def _wait_for_rules(plane: ControlPlane) -> None:
    deadline = time.monotonic() + 60
    while not causes(plane, "POST", OBJECTS, check({"a": 0})):
        assert time.monotonic() < deadline
        time.sleep(0.05)
