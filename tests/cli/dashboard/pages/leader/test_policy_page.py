"""The policy page: what is in force, what is wrong with an edit, and what is shown where the leader does not tell."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from stromboli.cli.dashboard.pages.leader.policy_page import ROUTES, policy
from stromboli.cli.dashboard.pages.page_content import PageContent
from stromboli.engine.failing_plugins import DisabledSince
from stromboli.policy.policy import PolicyError, default_policy, load_policy
from stromboli.scheduler.explain.policy_document import (
    ActionInForce,
    PluginInForce,
    PolicyDocument,
    PolicyMessage,
    RefusedEdit,
    SetAside,
)
from stromboli.scheduler.explain.policy_record import policy_document
from stromboli.scheduling_loop import RefusedPolicy
from tests.cli.dashboard.telling_leader import TellingLeader
from tests.cli.dashboard.view_requests import (
    CATALOG,
    HOSTILE,
    NOW,
    html_of,
    links_of,
    rendered,
    text_of,
    view_request,
)

TEXT = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: binpack
    arguments:
      binpack.weight: 7
  - name: capacity
"""
WRONG = TEXT.replace("binpack.weight", "binpack.wait")
FILE = "/volcano.scheduler/volcano-scheduler.conf"


def told(text: str = TEXT, refused: RefusedPolicy | None = None, set_aside: Any = None) -> PolicyDocument:
    """What the leader tells of a policy that it has loaded."""
    document = policy_document(load_policy(text, CATALOG, FILE), NOW - 7200, refused, set_aside or {})
    return replace(document, leader="volcano-0_1")


def refusal(text: str, is_latest: bool = True) -> RefusedPolicy:
    with pytest.raises(PolicyError) as error:
        load_policy(text, CATALOG, FILE)
    return RefusedPolicy(NOW - 90, FILE, error.value.errors, is_latest)


def page_of(document: PolicyDocument | None = None, kept: str | None = None, **leader: Any) -> PageContent:
    return TellingLeader(policy=document, kept=kept, **leader).page(policy, view_request("/policy"))


def test_the_page_is_read_with_the_rights_of_the_viewer():
    (route,) = ROUTES
    assert (route.personal, route.refresh) == (True, 10.0)


def test_the_policy_in_force_is_told_with_its_source_age_and_digest():
    document = told()
    text = text_of(page_of(document, TEXT))
    assert FILE in text
    assert "2h ago" in text or "120m ago" in text
    assert document.digest in text
    assert re.search(r"1 enqueue|enqueue Admit pending jobs", text)
    assert text.index("enqueue") < text.index("allocate") < text.index("backfill")


def test_plugins_have_a_description_their_arguments_and_the_switches_that_are_off():
    plugins = page_of(told(), TEXT).regions["policy-plugins"]
    assert "Scores a node by how full it would be" in plugins
    assert "<strong>binpack.weight: 7</strong>" in plugins
    assert "<code>binpack.cpu: 1</code> <small>default</small>" in plugins
    assert "enablePreemptable" in plugins
    tiers = re.findall(r'<td class="number">(\d+)</td><td><strong>([\w-]+)', plugins)
    assert tiers == [("1", "priority"), ("1", "gang"), ("2", "binpack"), ("2", "capacity")]
    assert "enableHierarchy" not in plugins


def test_lines_of_the_text_have_addresses():
    region = page_of(told(), TEXT).regions["policy-text"]
    assert 'id="L1"' in region
    assert re.search(r'id="L8"><a href="#L8" class="gutter">\s+8 </a>  - name: binpack', region)


def test_warnings_lead_to_their_lines():
    text = TEXT.replace("enqueue, allocate, backfill", "allocate, enqueue")
    document = told(text)
    assert document.warnings
    page = page_of(document, text)
    line = document.warnings[0].line
    assert f"#L{line}" in links_of(page)
    assert f'id="L{line}" class="marked"' in page.regions["policy-text"]


def test_a_policy_that_is_as_it_is_kept_has_no_problems():
    page = page_of(told(), TEXT)
    assert page.regions["policy-problems"] == ""
    assert page.regions["policy-edit"] == ""


def test_an_edit_that_was_refused_is_told_first_and_its_errors_lead_to_its_lines():
    page = page_of(told(refused=refusal(WRONG)), WRONG)
    problems = page.regions["policy-problems"]
    assert next(iter(page.regions)) == "policy-problems"
    assert "The last edit is wrong, and not in force" in problems
    assert "binpack.wait" in problems
    assert "90s" in problems
    assert 'href="#E10"' in problems
    assert 'id="E10" class="marked"' in page.regions["policy-edit"]
    assert "binpack.weight" in page.regions["policy-text"]


def test_errors_of_an_edit_that_cannot_be_read_lead_nowhere():
    problems = page_of(told(refused=refusal(WRONG))).regions["policy-problems"]
    assert "line 10" in problems
    assert "#E10" not in problems


def test_an_edit_that_was_put_right_is_told_as_past():
    page = page_of(told(refused=refusal(WRONG, is_latest=False)), TEXT)
    assert "An earlier edit was refused" in text_of(page)
    assert page.regions["policy-edit"] == ""


def test_an_edit_that_was_not_picked_up_yet_is_told():
    other = TEXT.replace("7", "9")
    page = page_of(told(), other)
    assert "An edit is not in force yet" in text_of(page)
    assert "binpack.weight: 9" in page.regions["policy-edit"]


def test_plugins_that_are_set_aside_are_told_with_the_cause():
    disabled = DisabledSince(NOW - 30, "ZeroDivisionError")
    text = text_of(page_of(told(set_aside={("binpack", "node_score"): disabled}), TEXT))
    assert "binpack : node_score, for 30s : ZeroDivisionError" in text


# -- without the leader


def test_without_the_leader_the_policy_that_is_kept_is_shown():
    page = page_of(kept=TEXT)
    text = text_of(page)
    assert "The leader does not tell of its policy" in text
    assert "whether it is in force is not known" in text
    assert "<strong>binpack.weight: 7</strong>" in page.regions["policy-plugins"]
    assert "not known" in page.regions["policy"]


def test_without_the_leader_what_is_wrong_with_the_kept_policy_is_told():
    page = page_of(kept='actions: "allocate"\ntiers: 7\n')
    assert "#E2" in links_of(page)
    assert "policy-plugins" not in page.regions


def test_without_the_leader_and_without_rights_both_are_told():
    request = view_request("/policy")
    text = text_of(rendered(policy, request))
    assert "The leader does not tell of its policy" in text
    assert "Nor can you read where it is kept" in text
    assert "stromboli policy show --in-force" in text


def test_without_a_kept_policy_the_built_in_one_is_shown():
    page = page_of(kept="")
    assert "built-in policy" in text_of(page)
    assert default_policy(CATALOG).source.splitlines()[0].split(":")[0] in page.regions["policy-text"]


def test_a_viewer_without_the_right_is_told_which_one_it_is():
    refused = 'User "ann" cannot get path "/explain/policy": grant access with a ClusterRole that has nonResourceURLs'
    assert "stromboli-explain-cluster" in text_of(page_of(told(), TEXT, refusal=refused))


# -- hostile and large


def test_passwords_are_not_shown():
    text = TEXT + "metrics:\n  type: elasticsearch\n  elasticsearch.password: s3cr3t-word\n"
    for page in (
        page_of(told(text), text),
        page_of(told(), text),
        page_of(kept=text),
        page_of(kept=text + "tiers: 7"),
    ):
        assert "s3cr3t-word" not in html_of(page)


def test_hostile_texts_are_shown_as_texts():
    long = HOSTILE * 200
    document = PolicyDocument(
        long,
        NOW,
        long,
        long,
        text=(HOSTILE + "\n\x1b[31m\n") * 20_000,
        actions=[ActionInForce(long, {long: long})] * 300,
        tiers=[[PluginInForce(long, {long: {long: [long]}}, switched_off=[long] * 50)] * 30] * 2,
        metrics={long: long},
        warnings=[PolicyMessage(long, 3)] * 300,
        refused=RefusedEdit(NOW, long, [PolicyMessage(long, 4)] * 300, 5, True),
        set_aside=[SetAside(long, long, NOW, long)] * 300,
    )
    page = html_of(page_of(document, (HOSTILE + "\n") * 20_000))
    assert "<script" not in page
    assert "\x1b" not in page
    assert len(page) < 1_000_000


@pytest.mark.parametrize("kept", [HOSTILE, "a: " * 50_000, "[" * 5000, "\x00", "x" * 200_000, "- *a\n"])
def test_hostile_policies_that_are_kept_are_told_as_wrong(kept: str):
    page = html_of(page_of(kept=kept))
    assert "is wrong, and not in force" in page
    assert "<script" not in page
    assert len(page) < 1_000_000
