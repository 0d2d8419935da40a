import pytest

from stromboli.embedded.nodes.real.restart_policy import is_restarted, restart_policy


@pytest.mark.parametrize(
    ("own", "pod", "init", "policy"),
    [
        (None, "Always", False, "Always"),
        (None, "Never", False, "Never"),
        ("OnFailure", "Never", False, "OnFailure"),
        (None, "Always", True, "OnFailure"),
        (None, "OnFailure", True, "OnFailure"),
        (None, "Never", True, "Never"),
        ("Always", "Never", True, "Always"),
    ],
)
def test_a_container_has_its_own_policy_or_that_of_its_pod(own, pod, init, policy):
    assert restart_policy({"restartPolicy": own}, pod, init) == policy


@pytest.mark.parametrize(
    ("policy", "code", "restarted"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 0, False),
        ("OnFailure", 1, True),
        ("Never", 0, False),
        ("Never", 1, False),
    ],
)
def test_a_policy_says_which_terminated_containers_are_restarted(policy, code, restarted):
    assert is_restarted({}, policy, code) is restarted


@pytest.mark.parametrize(
    ("operator", "values", "code", "restarted"),
    [
        ("In", [42, 43], 42, True),
        ("In", [42], 1, False),
        ("NotIn", [42], 42, False),
        ("NotIn", [42], 1, True),
        ("Unknown", [1], 1, False),
    ],
)
def test_a_rule_for_its_exit_code_goes_before_the_policy(operator, values, code, restarted):
    rule = {"action": "Restart", "exitCodes": {"operator": operator, "values": values}}
    assert is_restarted({"restartPolicyRules": [rule]}, "Never", code) is restarted
