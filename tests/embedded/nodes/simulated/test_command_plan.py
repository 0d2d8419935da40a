"""What commands plainly do, compared with what a shell makes of them."""

import math
import subprocess

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.simulated.command_plan import (
    CommandPlan,
    Output,
    Printed,
    command_plan,
    container_plan,
    container_plans,
)
from stromboli.embedded.nodes.simulated.shell_script import MAX_SCRIPT, NotSimple, parse_script


def script(text):
    return command_plan(("sh", "-c", text))


def printed(plan):
    return "".join(output.text for output in plan.outputs)


@pytest.mark.parametrize(
    ("words", "plan"),
    [
        (["sleep", "30"], CommandPlan(30.0)),
        (["/bin/sleep", "2m"], CommandPlan(120.0)),
        (["sleep", "1m", "30s"], CommandPlan(90.0)),
        (["sleep", ".5"], CommandPlan(0.5)),
        (["sleep", "infinity"], CommandPlan(math.inf)),
        (["true"], CommandPlan(0.0)),
        (["/usr/bin/false"], CommandPlan(0.0, 1)),
        (["date"], CommandPlan(0.0, 0, (Output(0.0, Printed.DATE),))),
        (["hostname"], CommandPlan(0.0, 0, (Output(0.0, Printed.HOSTNAME),))),
        (["echo", "a", "$HOME"], CommandPlan(0.0, 0, (Output(0.0, "a $HOME\n"),))),
        (["printf", "a\\nb"], CommandPlan(0.0, 0, (Output(0.0, "a\nb"),))),
        (["env"], CommandPlan(0.0, 0, (Output(0.0, Printed.UNKNOWN),))),
        (["sh", "-c", "sleep 2; exit 3"], CommandPlan(2.0, 3)),
        (["/bin/bash", "-ec", "false; sleep 9"], CommandPlan(0.0, 1)),
        (["sh", "-c", "sleep 1 && sleep infinity; exit 1"], CommandPlan(math.inf)),
    ],
)
def test_a_simple_command_has_a_plan(words, plan):
    assert command_plan(tuple(words)) == plan


@pytest.mark.parametrize(
    "text",
    [
        "date; echo Hello from the Kubernetes cluster",
        "echo start; ls -la /tmp; cat /etc/hosts; echo done",
        "echo `date` is \"$(hostname)'s $(date +%H) o'clock\"; exit 0",
        "X=1 Y=$(date); echo ${X:-none} $Y > /dev/null 2>&1",
        "set -ex; printf 'a %s' b; exec sleep 5",
        "# a comment\necho a \\\n  b\n\nsleep 1 # more\n",
        "id && whoami || uname -a",
    ],
)
def test_a_script_of_simple_commands_ends_well(text):
    plan = script(text)
    assert plan is not None
    assert plan.exit_code == 0
    assert plan.run_time < 10


@pytest.mark.parametrize(
    "text",
    [
        "while true; do date; sleep 5; done",
        "for i in 1 2; do echo $i; done",
        "if true; then echo a; fi",
        "sleep $SECONDS_TO_SLEEP",
        "sleep ten",
        "sleep 5 &",
        "yes | head",
        "echo a | cat",
        "(sleep 1)",
        "$COMMAND",
        "cat",
        "cat /dev/zero",
        "cat < /dev/urandom",
        "echo a > /data/file",
        "echo $(python train.py)",
        "echo $(echo $(echo $(echo $(echo a))))",
        "echo $((1 + 1))",
        "echo ${X:?missing}",
        "echo $'a'",
        "echo 'a",
        'echo "a',
        "echo a\\",
        "echo a;; echo b",
        "; echo a",
        "echo a &&",
        "&& echo a",
        "exit $CODE",
        "exit many",
        "set -o pipefail",
        "python train.py",
        "/opt/echo",
        "./echo",
        "env A=1 python x.py",
        "hostname > x",
        "trap 'exit 0' TERM; sleep 5",
    ],
)
def test_what_is_not_certain_has_no_plan(text):
    assert script(text) is None


@pytest.mark.parametrize(
    "words", [["exit", "3"], ["sh"], ["sh", "script.sh"], ["sh", "-c"], ["python"], [""], ["sleep"]]
)
def test_a_command_that_is_no_program_or_none_that_we_know_has_no_plan(words):
    assert command_plan(tuple(words)) is None


def test_what_is_printed_has_its_time():
    plan = script("echo a; sleep 2; echo -n b; sleep 3; echo c >/dev/null; echo d 1>&2")
    assert plan.outputs == (Output(0.0, "a\n"), Output(2.0, "b"), Output(5.0, "d\n"))


def test_a_container_without_a_command_does_not_say_when_it_ends():
    assert container_plan({"name": "web", "image": "nginx"}) is None
    assert container_plan({"command": "date", "args": [7]}) is None
    assert container_plan({"args": ["date"]}).exit_code == 0
    assert container_plan({"command": ["sh", "-c"], "args": ["exit 2"]}).exit_code == 2


def a_pod(**meta):
    return msgspec.convert({"metadata": {"name": "p", "namespace": "ns", "uid": "u", **meta}}, NodePod)


INDEX = "batch.kubernetes.io/job-completion-index"
BY_FIELD = {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}
ENV = [
    {"name": "GREETING", "value": "Hi  there"},
    {"name": "WHO", "value": "$(GREETING), you"},
    {"name": "TIME", "value": "7"},
    {"name": "CODE", "value": "3"},
    {"name": "SETS", "value": "A=1"},
    {"name": "JOB_COMPLETION_INDEX", "valueFrom": BY_FIELD},
    {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    {"name": "LONG", "value": "x" * 2000},
]


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (["sh", "-c", "echo My index is $JOB_COMPLETION_INDEX"], (0.0, 0, "My index is 4\n")),
        (["sh", "-c", 'echo "${GREETING}"; sleep $TIME; exit $CODE'], (7.0, 3, "Hi  there\n")),
        (["sh", "-c", "echo '$TIME' \\$TIME"], (0.0, 0, "$TIME $TIME\n")),
        (
            ["echo", "$(WHO)", "$$(TIME)", "$(NONE)", "$TIME"],
            (0.0, 0, "Hi  there, you $(TIME) $(NONE) $TIME\n"),
        ),
        (["sh", "-c", "sleep $(TIME)"], (7.0, 0, "")),
        (["sh", "-c", "echo $GREETING"], (0.0, 0, Printed.UNKNOWN)),  # it becomes two words
        (["sh", "-c", "TIME=8; echo $TIME"], (0.0, 0, Printed.UNKNOWN)),
        (["sh", "-c", "echo $SECRET $LONG"], (0.0, 0, Printed.UNKNOWN)),
        (["sh", "-c", "sleep $SECRET"], None),
        (["echo", "$(SECRET)"], None),
        (["echo", "$(LONG)"], None),
        (["sh", "-c", "$SETS"], None),
        (["sh", "-c", "X=1 $SETS; $TIME"], None),
    ],
)
def test_known_values_of_variables_are_put_in(words, outcome):
    pod = a_pod(annotations={INDEX: "4"})
    plan = container_plan({"command": words, "env": ENV}, pod)
    if outcome is None:
        assert plan is None
    else:
        seconds, code, text = outcome
        texts = tuple(output.text for output in plan.outputs)
        assert (plan.run_time, plan.exit_code, texts) == (seconds, code, (text,) if text else ())


def test_what_a_config_map_may_set_is_not_certain():
    source = [{"configMapRef": {"name": "c"}}]
    assert container_plan({"command": ["echo", "$(A)"], "envFrom": source}) is None
    assert (
        container_plan({"command": ["echo", "$(A)"], "env": [{"name": "A"}], "envFrom": source}).run_time == 0
    )


def test_values_that_grow_with_each_other_end_somewhere():
    doubled = [{"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})" if n else "ab"} for n in range(200)]
    last = {"command": ["echo", "$(V199)"], "env": doubled}
    assert container_plan(last) is None
    assert printed(container_plan({**last, "command": ["echo", "$(V3)"]})) == "ab" * 8 + "\n"
    many = {"command": ["sh", "-c", 'echo "' + "$V8" * 100 + '"'], "env": doubled}
    assert container_plan(many) is None
    assert container_plans([{**last, "command": ["echo", "$(V8)" * 30]}] * 5) == [None] * 5


def test_a_variable_of_the_container_is_not_certain():
    container = {
        "command": ["sh", "-c", "sleep $(TIME)"],
        "env": [{"name": "TIME", "value": "1; python x.py"}],
    }
    assert container_plan(container) is None
    assert container_plan({"command": ["sh", "-c", "echo $(date)"], "env": "x"}).exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["sh", "-c", "true;" * MAX_SCRIPT],
        ["true"] * 1000,
        ["sh", "-c", "$(" * (MAX_SCRIPT // 2)],
        ["sh", "-c", "echo " + "`true` " * 2000],
        ["sh", "-c", "echo " + '"' * 9999],
    ],
)
def test_a_hostile_command_is_read_in_no_time_or_not_at_all(words):
    plan = container_plan({"command": words})
    assert plan is None or plan.run_time == 0


_WORDS = st.sampled_from(["a", "'b c'", '"d e"', "f\\ g", "'h'i\"j\"", "''", '"\\$x"', "'#k'", "l#m"])
_COMMANDS = st.one_of(
    st.sampled_from(
        [
            "true",
            "false",
            ":",
            "exit",
            "exit 3",
            "exit 256",
            "exit $?",
            "set -e",
            "set +e",
            "X=1",
            "exec echo x",
        ]
    ),
    st.lists(_WORDS, max_size=3).map(lambda words: " ".join(["echo", *words])),
    st.sampled_from(
        ["echo a >/dev/null", "Y=$(false)", "echo $(true) >/dev/null", "exec false", "printf 'q\\n'"]
    ),
)
_SCRIPTS = st.lists(
    st.tuples(_COMMANDS, st.sampled_from(["; ", " && ", " || ", "\n", " # c\n"])), min_size=1, max_size=6
)


@given(_SCRIPTS)
@example([("set -e", "; "), ("false", " || "), ("false", "; "), ("echo a", "\n")])
@example([("set -e", "; "), ("false", " && "), ("true", "; "), ("echo a", "\n")])
@example([("false", "\n"), ("exit $?", "; ")])
@example([("false", " || "), ("Y=$(false)", " && "), ("echo a", "; ")])
def test_a_script_ends_and_prints_as_in_a_shell(parts):
    text = "".join(command + operator for command, operator in parts)
    if text.endswith((" && ", " || ")):
        text += "true"
    shell = subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=False)
    plan = script(text)
    assert (plan.exit_code, printed(plan)) == (shell.returncode, shell.stdout)


@given(st.text(alphabet="ab $(){}'\"`\\;&|<>#\n=*", max_size=60))
def test_whatever_a_script_is_it_is_read_or_not_simple(text):
    try:
        commands = parse_script(text)
    except NotSimple:
        return
    assert all(command.words for command in commands)


@given(st.lists(st.text(alphabet="sleep echo date -c$(`);&|'\"1.", max_size=30), max_size=4))
def test_whatever_a_command_is_its_plan_has_a_run_time_and_an_exit_code(words):
    plan = command_plan(tuple(words))
    if plan is not None:
        assert plan.run_time >= 0
        assert 0 <= plan.exit_code < 256


def test_exec_runs_programs_and_not_what_only_a_shell_knows():
    assert script("exec date") is not None
    assert script("exec exec date") is None
    assert script("exec " * 3000 + "date") is None


def test_of_too_long_commands_of_a_pod_none_is_read():
    short, long = {"command": ["date"]}, {"command": ["echo", "a" * (MAX_SCRIPT - 4)]}
    assert container_plans([short, long, long]) == [None] * 3
    assert None not in container_plans([short, long])
