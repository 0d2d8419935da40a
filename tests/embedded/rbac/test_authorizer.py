"""Who may do what, against a naive reading of all roles and bindings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.rbac.access_reviews import BadReview, complete_review
from stromboli.embedded.rbac.authorizer import Authorizer, forbidden_message
from stromboli.embedded.rbac.bootstrap_roles import bootstrap_policy
from stromboli.embedded.rbac.escalation import escalation_error
from stromboli.embedded.rbac.policy_rules import Attributes, PolicyRule, RuleIndex, User, rules_of

ANN = User("ann", ("system:authenticated",))
ROOT = User("root", ("system:masters",))


def role(name, *rules, namespace="", labels=(), gathers=()):
    content = {
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "rules": list(rules),
    }
    if gathers:
        content["aggregationRule"] = {
            "clusterRoleSelectors": [{"matchLabels": {label: "true"}} for label in gathers]
        }
    return ("roles" if namespace else "clusterroles"), content


def bound(role_name, *subjects, namespace="", kind="ClusterRole"):
    return ("rolebindings" if namespace else "clusterrolebindings"), {
        "metadata": {"name": f"to-{role_name}", "namespace": namespace},
        "roleRef": {"kind": kind, "name": role_name},
        "subjects": [dict(zip(("kind", "name", "namespace"), subject, strict=False)) for subject in subjects],
    }


def rule(verbs, groups, resources, names=()):
    return {
        "verbs": verbs.split(),
        "apiGroups": groups.split(",") if groups else [""],
        "resources": resources.split(),
        "resourceNames": list(names),
    }


READER = role("reader", rule("get list", "", "pods pods/log"))


@pytest.mark.parametrize(
    ("rules", "attributes", "yes"),
    [
        (rule("get", "", "pods"), Attributes("get", "", "pods"), True),
        (rule("get", "", "pods"), Attributes("list", "", "pods"), False),
        (rule("get", "", "pods"), Attributes("get", "", "pods", "log"), False),
        (rule("get", "", "pods/log"), Attributes("get", "", "pods", "log"), True),
        (rule("get", "", "*"), Attributes("get", "", "pods", "log"), True),
        (rule("get", "*", "*/scale"), Attributes("get", "apps", "deployments", "scale"), True),
        (rule("get", "*", "*/scale"), Attributes("get", "apps", "deployments"), False),
        (rule("get", "", "pods"), Attributes("get", "apps", "pods"), False),
        (rule("*", "*", "*"), Attributes("anything", "x", "y", "z"), True),
        (rule("*", "*", "*"), Attributes("get", path="/metrics"), False),
        (rule("get", "", "pods", ["a"]), Attributes("get", "", "pods", name="a"), True),
        (rule("get", "", "pods", ["a"]), Attributes("get", "", "pods", name="b"), False),
        (rule("list", "", "pods", ["a"]), Attributes("list", "", "pods"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, Attributes("get", path="/api/v1"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/api/*"]}, Attributes("get", path="/apis"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/healthz"]}, Attributes("get", path="/healthz"), True),
        ({"verbs": ["*"], "nonResourceURLs": ["*"]}, Attributes("put", path="/x"), True),
        ({"verbs": "get", "resources": 7}, Attributes("get", "", "pods"), False),
        ("nonsense", Attributes("get", "", "pods"), False),
    ],
)
def test_a_rule_lets_through_what_it_names(rules, attributes, yes):
    authorizer = Authorizer([role("r", rules), bound("r", ("User", "ann"))])
    assert authorizer.authorize(ANN, attributes).allowed is yes


def test_a_binding_in_a_namespace_counts_there_alone():
    authorizer = Authorizer([READER, bound("reader", ("User", "ann"), namespace="team")])
    assert authorizer.authorize(ANN, Attributes("get", "", "pods", namespace="team"))[0]
    assert not authorizer.authorize(ANN, Attributes("get", "", "pods", namespace="other"))[0]
    assert not authorizer.authorize(ANN, Attributes("get", "", "pods"))[0]


def test_service_accounts_and_groups_are_subjects():
    authorizer = Authorizer([READER, bound("reader", ("ServiceAccount", "bot", "ci"), ("Group", "staff"))])
    attributes = Attributes("list", "", "pods", namespace="any")
    assert authorizer.authorize(User("system:serviceaccount:ci:bot"), attributes).allowed
    verdict = authorizer.authorize(User("eve", ("staff",)), attributes)
    assert verdict.reason == (
        'RBAC: allowed by ClusterRoleBinding "to-reader" of ClusterRole "reader" to Group "staff"'
    )
    assert not authorizer.authorize(User("bot"), attributes).allowed


def test_what_goes_takes_its_rights_along():
    authorizer = Authorizer([READER, bound("reader", ("User", "ann"))])
    attributes = Attributes("get", "", "pods")
    authorizer.drop("clusterroles", "", "reader")
    assert not authorizer.authorize(ANN, attributes).allowed
    authorizer.put(*READER)
    assert authorizer.authorize(ANN, attributes).allowed
    authorizer.put(*bound("reader", ("User", "ben")))
    assert not authorizer.authorize(ANN, attributes).allowed
    authorizer.drop("clusterrolebindings", "", "to-reader")
    assert not authorizer.authorize(User("ben"), attributes).allowed


def test_a_role_aggregates_labelled_roles_even_in_a_cycle():
    authorizer = Authorizer(
        [
            role("all", labels=[("to-more", "true")], gathers=["to-all"]),
            role("more", labels=[("to-all", "true")], gathers=["to-more"]),
            bound("all", ("User", "ann")),
        ]
    )
    attributes = Attributes("create", "x", "things")
    assert not authorizer.authorize(ANN, attributes).allowed
    authorizer.put(*role("late", rule("create", "x", "things"), labels=[("to-more", "true")]))
    assert authorizer.authorize(ANN, attributes).allowed


@pytest.mark.parametrize(
    ("name", "attributes", "yes"),
    [
        ("view", Attributes("list", "", "pods", namespace="a"), True),
        ("view", Attributes("get", "", "secrets", namespace="a"), False),
        ("view", Attributes("list", "batch.volcano.sh", "jobs", namespace="a"), True),
        ("edit", Attributes("create", "batch.volcano.sh", "jobs", namespace="a"), True),
        ("edit", Attributes("list", "", "pods", namespace="a"), True),
        ("edit", Attributes("create", "rbac.authorization.k8s.io", "roles", namespace="a"), False),
        ("admin", Attributes("create", "rbac.authorization.k8s.io", "roles", namespace="a"), True),
        ("admin", Attributes("delete", "", "pods", namespace="a"), True),
        ("admin", Attributes("delete", "", "pods", namespace="b"), False),
        ("cluster-admin", Attributes("delete", "any", "thing", namespace="a"), True),
    ],
)
def test_the_roles_of_the_beginning_mean_what_people_expect(name, attributes, yes):
    authorizer = Authorizer([*bootstrap_policy(), bound(name, ("User", "ann"), namespace="a")])
    assert authorizer.authorize(ANN, attributes).allowed is yes


def test_everybody_may_look_around_and_ask_what_they_may():
    authorizer = Authorizer(bootstrap_policy())
    assert authorizer.authorize(ANN, Attributes("get", path="/apis/batch/v1")).allowed
    assert authorizer.authorize(
        ANN, Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews")
    ).allowed
    assert authorizer.authorize(
        User("", ("system:unauthenticated",)), Attributes("get", path="/readyz")
    ).allowed
    assert not authorizer.authorize(
        User("", ("system:unauthenticated",)), Attributes("get", path="/api")
    ).allowed
    assert not authorizer.authorize(ANN, Attributes("list", "", "nodes")).allowed
    assert authorizer.authorize(ROOT, Attributes("list", "", "nodes")).allowed


# -- reviews


def test_a_review_is_answered():
    authorizer = Authorizer([READER, bound("reader", ("User", "ann"), namespace="team")])
    spec = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "team"}}
    review = {"apiVersion": "authorization.k8s.io/v1", "spec": spec}
    status = complete_review(authorizer, ANN, "SelfSubjectAccessReview", review)["status"]
    assert status["allowed"] is True
    assert 'RoleBinding "to-reader/team"' in status["reason"]
    attributes = {"spec": {**spec, "user": "ben"}}
    assert complete_review(authorizer, ROOT, "SubjectAccessReview", attributes)["status"] == {
        "allowed": False
    }
    assert complete_review(authorizer, ROOT, "LocalSubjectAccessReview", attributes, "team")["status"] == {
        "allowed": False
    }
    with pytest.raises(BadReview, match="namespace"):
        complete_review(authorizer, ROOT, "LocalSubjectAccessReview", attributes, "other")
    paths = {"spec": {"nonResourceAttributes": {"verb": "get", "path": "/x"}}}
    assert complete_review(authorizer, ROOT, "SelfSubjectAccessReview", paths)["status"] == {"allowed": True}


@pytest.mark.parametrize(
    "spec", [{}, {"resourceAttributes": {}, "nonResourceAttributes": {}}, [], {"resourceAttributes": 1}]
)
def test_a_review_that_asks_nothing_is_refused(spec):
    with pytest.raises(BadReview, match="spec"):
        complete_review(Authorizer(), ANN, "SelfSubjectAccessReview", {"spec": spec})


def test_all_rules_of_a_user_are_listed():
    authorizer = Authorizer([*bootstrap_policy(), READER, bound("reader", ("User", "ann"), namespace="team")])
    listed = complete_review(authorizer, ANN, "SelfSubjectRulesReview", {"spec": {"namespace": "team"}})[
        "status"
    ]
    assert {"verbs": ("get", "list"), "apiGroups": ("",), "resources": ("pods", "pods/log")} in listed[
        "resourceRules"
    ]
    assert any("/api/*" in rule["nonResourceURLs"] for rule in listed["nonResourceRules"])
    assert listed["incomplete"] is False


def test_whoami_is_answered():
    answered = complete_review(Authorizer(), User("ann", ("g",), "7"), "SelfSubjectReview", {})
    assert answered["status"] == {"userInfo": {"username": "ann", "groups": ["g"], "uid": "7"}}


# -- nobody grants more than they have


def test_users_grant_only_permissions_that_they_have():
    authorizer = Authorizer([*bootstrap_policy(), bound("admin", ("User", "ann"), namespace="team")])
    more = role("more", rule("get", "", "nodes"), namespace="team")
    assert "get nodes" in escalation_error(authorizer, ANN, *more)
    less = role("less", rule("get", "", "pods"), namespace="team")
    assert escalation_error(authorizer, ANN, *less) == ""
    assert escalation_error(authorizer, ROOT, *more) == ""
    assert "not currently held" in escalation_error(
        authorizer, ANN, *bound("cluster-admin", ("User", "ann"), namespace="team")
    )
    assert escalation_error(authorizer, ANN, *bound("view", ("User", "ben"), namespace="team")) == ""
    assert "not currently held" in escalation_error(authorizer, ANN, *role("gather", gathers=["x"]))
    assert "not found" in escalation_error(
        authorizer, ANN, *bound("to-come", ("User", "ann"), namespace="team")
    )
    assert escalation_error(authorizer, ROOT, *bound("to-come", ("User", "ann"), namespace="team")) == ""
    authorizer.put(
        *role("binder", rule("bind", "rbac.authorization.k8s.io", "clusterroles", ["cluster-admin"]))
    )
    authorizer.put(*bound("binder", ("User", "ann")))
    assert escalation_error(authorizer, ANN, *bound("cluster-admin", ("User", "ann"), namespace="team")) == ""


def test_a_monstrous_role_is_not_counted_through():
    many = " ".join(f"x{index}" for index in range(2000))
    huge = role("huge", rule(many, many.replace(" ", ","), many), namespace="team")
    authorizer = Authorizer(
        [role("all", rule("*", "*", "*"), namespace="other"), role("some", rule("x0", "*", "*"))]
    )
    authorizer.put(*bound("some", ("User", "ann")))
    assert "more than 100000 rights" in escalation_error(authorizer, ANN, *huge)


def test_a_forbidden_message_has_user_verb_resource_and_scope():
    assert forbidden_message(ANN, Attributes("list", "", "pods", namespace="x")) == (
        'pods is forbidden: User "ann" cannot list resource "pods" in API group "" in the namespace "x"'
    )
    assert forbidden_message(ANN, Attributes("get", "batch", "jobs", "status", "j")) == (
        'jobs.batch "j" is forbidden: User "ann" cannot get resource "jobs/status" in API group "batch"'
        " at the cluster scope"
    )
    assert "path" in forbidden_message(ANN, Attributes("get", path="/x"))


# -- against a naive reading

NAMES = st.sampled_from(["a", "b", "*"])
RULES = st.builds(
    lambda verbs, groups, resources, names: {
        "verbs": verbs,
        "apiGroups": groups,
        "resources": resources,
        "resourceNames": names,
    },
    st.lists(NAMES, max_size=2),
    st.lists(NAMES, max_size=2),
    st.lists(st.sampled_from(["a", "b", "a/s", "*/s", "*"]), max_size=2),
    st.lists(st.sampled_from(["a", "b"]), max_size=1),
)
SPACES = st.sampled_from(["", "n", "m"])
ROLES = st.builds(
    lambda name, rules, space: role(name, *rules, namespace=space), NAMES, st.lists(RULES, max_size=2), SPACES
)
BINDINGS = st.builds(
    lambda name, subjects, space, kind: bound(
        name, *subjects, namespace=space, kind=kind if space else "ClusterRole"
    ),
    NAMES,
    st.lists(st.sampled_from([("User", "ann"), ("Group", "g"), ("User", "ben")]), max_size=2),
    SPACES,
    st.sampled_from(["Role", "ClusterRole"]),
)
STEPS = st.lists(st.tuples(st.booleans(), ROLES | BINDINGS), max_size=12)
ASKED = st.builds(
    Attributes,
    NAMES,
    NAMES,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["", "s"]),
    st.sampled_from(["", "a"]),
    SPACES,
)


@given(STEPS, ASKED)
def test_rights_kept_up_equal_rights_read_afresh(steps, attributes):
    authorizer, stored = Authorizer(), {}
    for put, (resource, content) in steps:
        meta = content["metadata"]
        key = resource, meta["namespace"], meta["name"]
        if put:
            authorizer.put(resource, content)
            stored[key] = content
        else:
            authorizer.drop(*key)
            stored.pop(key, None)
    user = User("ann", ("g",))
    assert authorizer.authorize(user, attributes).allowed is naive(stored, user, attributes)


def naive(stored, user, attributes):
    for (resource, namespace, _), content in stored.items():
        if "bindings" not in resource or (namespace and namespace != attributes.namespace):
            continue
        speaks = any(
            (subject["kind"], subject["name"])
            in (("User", user.name), *(("Group", group) for group in user.groups))
            for subject in content["subjects"]
        )
        ref = content["roleRef"]
        role = stored.get(
            ("clusterroles", "", ref["name"])
            if ref["kind"] == "ClusterRole"
            else ("roles", namespace, ref["name"])
        )
        if speaks and role and any(rule.allows(attributes) for rule in rules_of(role)):
            return True
    return False


def test_a_rule_is_made_of_its_parts():
    whole = PolicyRule(("get", "list"), ("", "apps"), ("pods", "pods/log"))
    parts = list(whole.permissions())
    assert len(parts) == 8
    assert all(whole.allows(part) for part in parts)


def test_a_user_of_very_many_rules_and_bindings_is_judged_quickly() -> None:
    """By what is compared, not by time: a rule that does not name the resource is not asked."""
    asked = 0

    class Counting(PolicyRule, frozen=True):
        def allows(self, attributes: Attributes) -> bool:
            nonlocal asked
            asked += 1
            return super().allows(attributes)

    rules = tuple(Counting(("get",), ("",), (f"things{number}",)) for number in range(10_000))
    index = RuleIndex((*rules, Counting(("list",), ("*",), ("*",))))
    assert index.allows(Attributes("get", "", "things7"))
    assert not index.allows(Attributes("delete", "", "things8"))
    assert index.allows(Attributes("list", "apps", "others"))
    assert asked == 4


def test_a_binding_that_changes_or_goes_is_forgotten_by_its_old_subjects() -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    authorizer = Authorizer([("clusterroles", {"metadata": {"name": "reader"}, "rules": [rule]})])

    def bind(*users: str) -> None:
        subjects = [{"kind": "User", "name": name} for name in users]
        role = {"kind": "ClusterRole", "name": "reader"}
        binding = {"metadata": {"name": "b"}, "roleRef": role, "subjects": subjects}
        authorizer.put("clusterrolebindings", binding)

    def readers() -> list[str]:
        request = Attributes("get", "", "pods")
        return [name for name in ("ann", "bob") if authorizer.authorize(User(name), request).allowed]

    bind("ann", "ann")
    assert readers() == ["ann"]
    bind("bob")
    assert readers() == ["bob"]
    authorizer.drop("clusterrolebindings", "", "b")
    assert readers() == []


def test_a_role_of_too_many_combinations_is_not_taken_apart() -> None:
    names = [f"n{number}" for number in range(100)]
    wide = {"verbs": names, "apiGroups": names, "resources": names, "resourceNames": names}
    mine = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    role = {"metadata": {"name": "mine"}, "rules": [mine]}
    subject = {"kind": "User", "name": "ann"}
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "mine"},
        "subjects": [subject],
    }
    held = {**mine, "verbs": names}
    authorizer = Authorizer([("clusterroles", {**role, "rules": [held]}), ("clusterrolebindings", binding)])
    content = {"metadata": {"name": "wide"}, "rules": [wide]}
    why = escalation_error(authorizer, User("ann"), "clusterroles", content)
    assert "more than 100000 rights in one role" in why
