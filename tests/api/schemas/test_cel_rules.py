"""Rules in CEL: those that we understand hold or not, others let everything through, none runs for ever."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.schemas.cel_rules import compiled, holds
from stromboli.api.schemas.crd_schemas import from_crd
from stromboli.api.schemas.normalization import normalize

IT: dict[str, Any] = {
    "a": 3,
    "b": "text",
    "l": [1, 2, 3],
    "m": {"x": 1},
    "t": True,
    "names": [{"n": "a"}, {"n": "b"}],
}


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ("self.a == 3", True),
        ("self.a != 3", False),
        ("self.a > 2 && self.a <= 3", True),
        ("self.a > -1", True),
        ("self.a < 2 || self.t", True),
        ("!self.t", False),
        ("has(self.a)", True),
        ("has(self.zz)", False),
        ("has(self.m.x) && !has(self.m.y)", True),
        ("has(self.zz) ? false : self.t", True),
        ("size(self.l) == 3", True),
        ("self.l.size() == 2", False),
        ("2 in self.l", True),
        ("'x' in self.m", True),
        ("self.b in ['text', \"other\"]", True),
        ("self.b.startsWith('te') && self.b.endsWith('xt')", True),
        ("self.b.contains('zz')", False),
        ("self.l.all(one, one > 0)", True),
        ("self.l.exists(one, one > 5)", False),
        ("self.names.all(one, one.n.size() == 1)", True),
        ("self.m['x'] == 1 && self.l[0] == 1", True),
        ("(self.a == 3) == self.t", True),
        ("self.a == 3.0", True),
        ("true != 1", True),
        ("self.zz == 3", False),
        ("self.a < 'x'", False),
        ("self.a", False),
        ("self.l[9] == 1", False),
    ],
)
def test_rules_that_are_understood(rule: str, outcome: bool) -> None:
    assert compiled(rule) is not None
    assert holds(rule, IT) is outcome


@pytest.mark.parametrize(
    "rule",
    [
        "self.a == oldSelf.a",
        "self.b.matches('x')",
        "self.a + 1 == 4",
        "duration('1h')",
        "(",
        "",
        "self.a ==",
        "~",
    ],
)
def test_a_rule_that_is_beyond_us_lets_everything_through(rule: str) -> None:
    assert compiled(rule) is None
    assert holds(rule, IT)


def test_a_rule_does_not_run_for_ever() -> None:
    nested = "self.all(a, self.all(b, self.all(c, self.all(d, true))))"
    assert not holds(nested, list(range(1000)))
    assert compiled("(" * 2000 + "true" + ")" * 2000) is None


@given(st.text(alphabet="self.a()[]!&|?:<>='\" 0123hasinl,-", max_size=40))
def test_any_text_is_a_rule_or_beyond_us(rule: str) -> None:
    assert holds(rule, IT) in (True, False)


def test_the_rules_of_hypernodes() -> None:
    crd = yaml.safe_load(Path("deploy/crds/topology.volcano.sh_hypernodes.yaml").read_text())
    schema = from_crd(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])

    def problems(**selector: Any) -> list[str]:
        member = {"type": "Node", "selector": selector}
        it = {"metadata": {"name": "a"}, "spec": {"tier": 1, "members": [member]}}
        return [str(problem) for problem in normalize(it, schema).problems]

    exact, regex = {"name": "a"}, {"pattern": "x"}
    assert problems(exactMatch=exact) == []
    assert problems() == [
        "spec.members[0].selector: Invalid value: Either ExactMatch or RegexMatch or LabelMatch must be specified"
    ]
    assert problems(exactMatch=exact, regexMatch=regex) == [
        "spec.members[0].selector: Invalid value: Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
    ]
