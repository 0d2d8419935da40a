"""Rules of CRDs: what holds, what does not, what is compared with the old value, and what a rule may cost."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.schemas.crd_schemas import SchemaError, from_crd
from stromboli.api.schemas.normalization import normalize
from stromboli.api.schemas.schema import Schema
from stromboli.api.schemas.validation_rules import rule_problems

SPEC: dict[str, Any] = {
    "a": 3,
    "b": "text",
    "d": 1.5,
    "l": [1, 2, 3],
    "m": {"x": 1, "a-b": 2},
    "t": True,
    "names": [{"n": "a"}, {"n": "b"}],
    "namespace": "default",
    "dash-ed": "x",
    "port": "http",
    "when": "2024-05-01T12:00:00.5+02:00",
    "wait": "1h30m",
    "data": "aGk=",
    "open": {"anything": [1]},
}
NAMED = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
PROPERTIES: dict[str, Any] = {
    "a": {"type": "integer"},
    "b": {"type": "string"},
    "d": {"type": "number"},
    "l": {"type": "array", "items": {"type": "integer"}},
    "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    "t": {"type": "boolean"},
    "z": {"type": "string"},
    "names": {
        "type": "array",
        "items": NAMED,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"],
    },
    "namespace": {"type": "string"},
    "dash-ed": {"type": "string"},
    "port": {"x-kubernetes-int-or-string": True},
    "when": {"type": "string", "format": "date-time"},
    "wait": {"type": "string", "format": "duration"},
    "data": {"type": "string", "format": "byte"},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


def schema_of(spec: dict[str, Any], check_rules: bool = True) -> Schema:
    return from_crd({"type": "object", "properties": {"spec": spec}}, check_rules=check_rules)


def with_rules(*rules: str | dict[str, Any], **changes: Any) -> Schema:
    listed = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return schema_of(
        {"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": listed, **changes}
    )


def problems(schema: Schema, spec: Any, old: Any = None) -> list[str]:
    content = {"metadata": {"name": "a"}, "spec": spec}
    assert normalize(content, schema).problems == []
    earlier = None if old is None else {"metadata": {"name": "a"}, "spec": old}
    return [str(problem) for problem in rule_problems(content, earlier, schema)]


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ("self.a == 3", True),
        ("self.a > 2 && self.a <= 3", True),
        ("!self.t", False),
        ("has(self.a) && !has(self.z)", True),
        ("has(self.z) ? false : self.t", True),
        ("size(self.l) == 3 && self.l.size() == 3", True),
        ("2 in self.l && 'x' in self.m", True),
        ("self.b in ['text', \"other\"]", True),
        ("self.b.startsWith('te') && self.b.endsWith('xt') && !self.b.contains('zz')", True),
        ("self.b.matches('^t(e|ee)+xt$')", True),
        (
            "self.b.split('e') == ['t', 'xt'] && self.b.indexOf('x') == 2 && self.b.lowerAscii() == 'text'",
            True,
        ),
        ("self.b.replace('t', 'TT') == 'TTexTT' && ['a', 'b'].join('-') == 'a-b'", True),
        ("'%s has %d'.format([self.b, self.a]) == 'text has 3'", True),
        ("self.l.all(x, x > 0) && self.l.exists_one(x, x == 2)", True),
        ("self.l.map(x, x * 2) == [2, 4, 6] && self.l.filter(x, x > 1) == [2, 3]", True),
        ("self.l.all(i, x, x == i + 1)", True),
        ("self.names.all(x, x.n.size() == 1)", True),
        ("self.m['a-b'] == 2 && self.l[0] == 1 && self.m.x == 1", True),
        ("self.d + 1.0 == 2.5 && self.d > 1", True),
        ("self.?z.orValue('none') == 'none' && self.?b.hasValue()", True),
        ("self.__namespace__ == self.namespace && self.dash__dash__ed == 'x'", True),
        ("type(self.port) == string ? self.port == 'http' : self.port > 0", True),
        ("self.when == timestamp('2024-05-01T10:00:00.5Z') && self.wait > duration('1h')", True),
        ("self.data == b'hi'", True),
        ("sets.contains(self.l, [1, 2]) && self.l.sort() == self.l", True),
        ("quantity(self.m.x > 0 ? '1Gi' : '1').isGreaterThan(quantity('1Mi')) && !isIP(self.b)", True),
        ("self.a < 2", False),
    ],
)
def test_rules_hold_or_do_not(rule: str, outcome: bool) -> None:
    assert (problems(with_rules(rule), SPEC) == []) is outcome


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("self.z == 'x'", "no such key"),
        ("self.l[9] == 1", "index out of bounds"),
        ("self.a / 0 == 1", "division by zero"),
        ("self.a + self.d > 1.0", "no such overload"),
    ],
)
def test_a_rule_without_a_value_does_not_hold_and_says_why(rule: str, why: str) -> None:
    (problem,) = problems(with_rules(rule), SPEC)
    assert problem.startswith('spec: Invalid value: "object": ')
    assert why in problem
    assert problem.endswith(f"evaluating rule: {rule}")


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("", "Required value: rule is not specified"),
        ("self.a ==", "Syntax error"),
        ("self.a + 1", "must evaluate to a bool"),
        ("self.aa == 3", "undefined field 'aa'"),
        ("!has(self.names[0].nn)", "undefined field 'nn'"),
        ("self.names.all(x, x.nn != '')", "undefined field 'nn'"),
        ("self.open.anything.size() == 1", "undefined field 'anything'"),
        ("self.dash_ed == 'x'", "undefined field 'dash_ed'"),
        ("self.b.foo()", "undeclared reference to 'foo'"),
        ("has_old_value", "undeclared reference to 'has_old_value'"),
        ("isURL(self.b)", "Kubernetes' URL library is not supported here"),
        ("self.b.matches('(')", "missing closing )"),
        ("self.b.matches(self.z)", "must be a literal here"),
        ("self.a == 1 || " * 500 + "true", "at most 5120 bytes"),
    ],
)
def test_a_rule_that_cannot_be_evaluated_is_refused_with_its_crd(rule: str, why: str) -> None:
    with pytest.raises(SchemaError) as refusal:
        with_rules(rule)
    (problem,) = refusal.value.problems
    assert problem.field == "openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    assert why in problem.message


def test_a_stored_rule_that_cannot_be_evaluated_refuses_objects() -> None:
    spec = {"type": "string", "x-kubernetes-validations": [{"rule": "isURL(self)"}, {"rule": "self != ''"}]}
    (problem,) = problems(schema_of(spec, check_rules=False), "x")
    assert problem.startswith(
        "spec: Invalid value: \"string\": rule compile error: undeclared reference to 'isURL'"
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rule": "true", "message": " "}, "must be non-empty if specified"),
        ({"rule": "true", "message": "a\nb"}, "must not contain line breaks"),
        ({"rule": "true\n"}, ""),
        ({"rule": "true ||\nfalse"}, "message must be specified if rule contains line breaks"),
        ({"rule": "true", "reason": "Bad"}, "supported values"),
        ({"rule": "true", "fieldPath": ".a.b"}, "must be a valid path"),
        ({"rule": "true", "fieldPath": ".m['a.b']"}, ""),
        ({"rule": "true", "messageExpression": "1"}, "must evaluate to a string"),
        ({"rule": "true", "optionalOldSelf": True}, "may not be set if oldSelf is not used in rule"),
        ({"rule": 3}, "Expected `str`"),
    ],
)
def test_the_fields_of_a_rule_are_checked(change: dict[str, Any], why: str) -> None:
    try:
        with_rules(change)
    except SchemaError as error:
        assert why
        assert why in str(error)
    else:
        assert not why


def test_rules_have_no_place_among_alternatives() -> None:
    rules = [{"rule": "self.a > 0"}]
    with pytest.raises(SchemaError, match="must be empty to be structural"):
        with_rules(anyOf=[{"x-kubernetes-validations": rules}])
    schema = with_rules(allOf=[{"x-kubernetes-validations": rules}])
    assert problems(schema, {"a": 0}) == ["spec: Invalid value: failed rule: self.a > 0"]
    with pytest.raises(SchemaError, match="undefined field 'q'"):
        with_rules(allOf=[{"x-kubernetes-validations": [{"rule": "self.q > 0"}]}])


def test_what_a_problem_says() -> None:
    rule = {"rule": "self.a < 2"}
    assert problems(with_rules(rule), SPEC) == ["spec: Invalid value: failed rule: self.a < 2"]
    assert problems(with_rules(rule | {"message": "too large"}), SPEC) == ["spec: Invalid value: too large"]
    text = rule | {"message": "m", "messageExpression": "'%d is too large'.format([self.a])"}
    assert problems(with_rules(text), SPEC) == ["spec: Invalid value: 3 is too large"]
    failing = rule | {"message": "m", "messageExpression": "self.z"}
    assert problems(with_rules(failing), SPEC) == ["spec: Invalid value: m"]
    forbidden = rule | {"reason": "FieldValueForbidden", "fieldPath": ".a", "message": "no"}
    assert problems(with_rules(forbidden), SPEC) == ["spec.a: Forbidden: no"]
    scalar = {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'", "message": "not x"}]}
    assert problems(schema_of(scalar), "x") == ['spec: Invalid value: "x": not x']


def test_a_transition_rule_needs_an_old_value() -> None:
    schema = with_rules({"rule": "self.a >= oldSelf.a", "message": "a must not shrink"})
    assert problems(schema, {"a": 1}) == []
    assert problems(schema, {"a": 1}, old={"a": 1}) == []
    assert problems(schema, {"a": 1}, old={"a": 2}) == ["spec: Invalid value: a must not shrink"]


def test_a_field_that_is_null_is_absent() -> None:
    text = {"type": "string", "nullable": True}
    values = {"type": "object", "additionalProperties": text}
    listed = {"type": "array", "items": text}
    rule = "!has(self.n) && self.?n.orValue('z') == 'z' && 'k' in self.m && dyn(self.l) == [null]"
    schema = schema_of(
        {
            "type": "object",
            "properties": {"n": text, "m": values, "l": listed},
            "x-kubernetes-validations": [{"rule": rule}],
        }
    )
    assert problems(schema, {"n": None, "m": {"k": None}, "l": [None]}) == []
    assert problems(schema, {"n": "x", "m": {"k": None}, "l": [None]}) != []


def test_an_optional_old_value_is_asked_for() -> None:
    rule = "!oldSelf.hasValue() ? self.a == 0 : self.a == oldSelf.value().a + 1 // counts"
    schema = with_rules({"rule": rule, "optionalOldSelf": True, "message": "count"})
    assert problems(schema, {"a": 0}) == []
    assert problems(schema, {"a": 1}) == ["spec: Invalid value: count"]
    assert problems(schema, {"a": 3}, old={"a": 2}) == []
    assert problems(schema, {"a": 4}, old={"a": 2}) == ["spec: Invalid value: count"]


@pytest.mark.parametrize(
    "old", [{"a": "x"}, {"b": 5}, {"l": 5}, {"l": ["x"]}, {"m": 1}, {"when": 5}, {"d": "x"}]
)
def test_an_old_value_of_another_type_is_told(old: dict[str, Any]) -> None:
    """It may have been stored when the definition had another schema."""
    (field,) = old
    schema = with_rules({"rule": f"self.{field} == oldSelf.{field}"})
    (problem,) = problems(schema, {field: SPEC[field]}, old=old)
    assert "invalid data, expected a value of type" in problem


def test_a_number_beyond_all_doubles_is_told() -> None:
    (problem,) = problems(with_rules({"rule": "self.d > 1.0"}), {"d": 10**400})
    assert "a number is out of range" in problem


def test_items_have_old_values_by_their_keys() -> None:
    items = NAMED | {
        "properties": {"n": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.v == oldSelf.v", "message": "immutable"}],
    }
    keyed = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"],
    }
    old, new = (
        [{"n": "a", "v": 1}, {"n": "b", "v": 2}],
        [{"n": "b", "v": 2}, {"n": "c", "v": 9}, {"n": "a", "v": 3}],
    )
    assert problems(schema_of(keyed), new, old=old) == ["spec[2]: Invalid value: immutable"]
    with pytest.raises(SchemaError, match="oldSelf cannot be used on the uncorrelatable portion"):
        schema_of({"type": "array", "items": items})


def test_the_order_of_a_set_is_no_change() -> None:
    rules = [{"rule": "self == oldSelf", "message": "immutable"}]
    listed = {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": rules}
    assert problems(schema_of(listed), ["b", "a"], old=["a", "b"]) == ["spec: Invalid value: immutable"]
    assert problems(schema_of(listed | {"x-kubernetes-list-type": "set"}), ["b", "a"], old=["a", "b"]) == []


def test_what_an_update_leaves_as_it_was_is_no_problem() -> None:
    strict = {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'"}]}
    schema = schema_of({"type": "object", "properties": {"a": strict, "b": strict}})
    assert problems(schema, {"a": "x", "b": "y"}, old={"a": "x", "b": "z"}) == []
    assert len(problems(schema, {"a": "x", "b": "x"}, old={"a": "x", "b": "z"})) == 1
    assert len(problems(schema, {"a": "x", "b": "y"})) == 1


@pytest.mark.parametrize(
    ("rule", "spec"),
    [
        ("self.l.all(a, self.l.all(b, self.l.all(c, true)))", {"l": list(range(1000))}),
        ("self.l.map(x, self.l + self.l).size() > 0", {"l": list(range(5000))}),
        ("self.l.all(x, self.l.map(y, y).size() > 0)", {"l": list(range(9000))}),
        ("self.l.all(x, self.b.contains('b') || true)", {"l": list(range(5000)), "b": "a" * 100_000}),
        ("self.l.all(x, self.b.split('').size() > 0)", {"l": list(range(5000)), "b": "a" * 10_000}),
        ("self.b.replace('a', self.b).replace('a', self.b) != ''", {"b": "a" * 1000}),
        (
            "self.l.all(x, self.b.matches('[a-z]*[^z]{900}x') || true)",
            {"l": list(range(5)), "b": "xa" * 10_000},
        ),
        (
            "'%s%s%s%s'.format([self.b, self.b, self.b, self.b]).replace('', self.b) != ''",
            {"b": "a" * 10_000},
        ),
        ("self.m.all(k, self.m.all(j, self.m == self.m))", {"m": {str(key): key for key in range(500)}}),
    ],
)
def test_a_rule_never_takes_long(rule: str, spec: dict[str, Any]) -> None:
    schema = with_rules(rule)
    started = time.process_time()
    (problem,) = problems(schema, spec)
    assert time.process_time() - started < 2
    assert "running out of cost budget" in problem


def test_the_rules_of_an_object_share_a_budget() -> None:
    rules = [{"rule": f"self.exists(x, x == {number}) || true"} for number in range(40)]
    inner = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rules}
    schema = schema_of({"type": "array", "items": inner})
    assert problems(schema, [[1, 2, 3]] * 5) == []
    started = time.process_time()
    (problem,) = problems(schema, [list(range(200))] * 500)
    assert time.process_time() - started < 2
    assert "running out of cost budget, no further validation rules will be run" in problem


def test_a_text_with_a_nul_is_a_text() -> None:
    assert problems(with_rules("self.b == 'a\\x00b' && self.b.size() == 3"), {"b": "a\0b"}) == []


@given(st.text(alphabet="self.a()[]!&|?:<>='\" 0123hasinl,-", max_size=40))
@example("self.a")
@example("null")
def test_any_text_is_a_rule_or_refused(rule: str) -> None:
    try:
        schema = with_rules(rule)
    except SchemaError:
        return
    problems(schema, SPEC)


def test_the_rules_of_hypernodes() -> None:
    crd = yaml.safe_load(Path("deploy/crds/topology.volcano.sh_hypernodes.yaml").read_text())
    schema = from_crd(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])

    def selected(**selector: Any) -> list[str]:
        return problems(schema, {"tier": 1, "members": [{"type": "Node", "selector": selector}]})

    exact, regex = {"name": "a"}, {"pattern": "x"}
    assert selected(exactMatch=exact) == []
    assert selected() == [
        "spec.members[0].selector: Invalid value: Either ExactMatch or RegexMatch or LabelMatch must be specified"
    ]
    assert selected(exactMatch=exact, regexMatch=regex) == [
        "spec.members[0].selector: Invalid value: Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
    ]


def test_what_an_update_leaves_as_it_was_is_compared_once() -> None:
    strict = {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'"}]}
    values = ["x"] * 3000
    started = time.process_time()
    assert problems(schema_of({"type": "array", "items": strict}), values, old=list(values)) == []
    assert time.process_time() - started < 2


def test_a_value_is_converted_only_as_far_as_its_rules_read_it() -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    value: Any = list(range(20_000))
    for _ in range(50):
        rules = [{"rule": "!has(self.b) || self.b != ''"}]
        schema = {
            "type": "object",
            "properties": {"a": schema, "b": {"type": "string"}},
            "x-kubernetes-validations": rules,
        }
        value = {"a": value, "b": "x"}
    started = time.process_time()
    assert problems(schema_of(schema), value) == []
    assert time.process_time() - started < 2


def test_the_rules_of_a_definition_are_bounded_together() -> None:
    rules = [{"rule": f"self.b != '{'x' * 1000}{number}'"} for number in range(20)]
    with pytest.raises(SchemaError, match="may have at most 16384 bytes together"):
        with_rules(*rules)
    assert with_rules(*rules[:1] * 20)
    with pytest.raises(SchemaError, match="may have at most 16384 bytes together"):
        with_rules(*({"rule": f"{number} > 0"} for number in range(800)))
    with pytest.raises(SchemaError, match="may have at most 5000 rules"):
        with_rules(*[{"rule": "true"}] * 5001)


def test_the_patterns_of_a_definition_are_bounded_together() -> None:
    """Each is compiled when the definition is created, and again for objects if there are too many to be kept."""
    names = [f"f{number}" for number in range(1000)]
    fields = {name: {"type": "string", "pattern": rf"\pL{{9}}{name}"} for name in names}
    started = time.process_time()
    with pytest.raises(SchemaError, match="use fewer, or avoid counted repetitions"):
        schema_of({"type": "object", "properties": fields})
    with pytest.raises(SchemaError, match="use fewer, or avoid counted repetitions"):
        with_rules(*({"rule": rf"self.b.matches(r'\pL{{9}}{name}')"} for name in names[:100]))
    assert time.process_time() - started < 3
    assert schema_of({"type": "object", "properties": dict.fromkeys(fields, fields["f1"])})


def test_a_stored_pattern_that_cannot_be_compiled_refuses_objects() -> None:
    schema = schema_of({"type": "string", "pattern": "(?=a)"}, check_rules=False)
    (problem,) = normalize({"spec": "a"}, schema).problems
    assert "cannot be matched: error parsing regexp: invalid or unsupported Perl syntax" in problem.message
