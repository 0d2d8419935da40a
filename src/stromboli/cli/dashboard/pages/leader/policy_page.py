"""The policy in force: its actions and plugins as they are used, what is wrong with its last edit, and its text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.dashboard.pages.leader.leader_silence import silence
from stromboli.cli.dashboard.pages.leader.numbered_text import numbered_text
from stromboli.cli.dashboard.pages.leader.told_policy import (
    DefaultArguments,
    default_arguments,
    kept_document,
    kept_text,
)
from stromboli.cli.dashboard.pages.page_content import PageContent, PageRoute, ViewRequest
from stromboli.cli.dashboard.pages.page_elements import age, card, facts, link, notes, plain_table, short_text
from stromboli.cli.leader.leader_query import Unreachable
from stromboli.cli.policy.policy_place import PolicyPlace
from stromboli.scheduler.explain.policy_document import (
    ActionInForce,
    PluginInForce,
    PolicyDocument,
    PolicyMessage,
    RefusedEdit,
    SetAside,
)
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

POLICY_PAGE = "/policy"
IN_FORCE, EDIT = "L", "E"
"""Prefixes of the ids of lines: of the text in force, and of an edit that is not."""
NAME_LENGTH = 80
VALUE_LENGTH = 120
ARGUMENTS_SHOWN = 30
MESSAGES_SHOWN = 50
ENTRIES_SHOWN = 100
"""Actions, tiers, and plugins of a tier."""
COMMANDS = (
    ("stromboli policy show --in-force", "print the policy of the cluster as a file"),
    ("stromboli policy check FILE", "say what is wrong with a policy, by line"),
    (
        "stromboli policy diff FILE",
        "compare a policy with the one in force, and what would be decided otherwise",
    ),
    ("stromboli policy apply FILE", "put a policy in force, if it is right"),
    ("stromboli plugins NAME", "show a plugin in full, with all its arguments"),
)


async def policy(request: ViewRequest) -> PageContent:
    told = await request.cluster.leader.policy(request.viewer)
    kept = await request.cluster.leader.kept_policy(request.viewer)
    if isinstance(told, PolicyDocument):
        edit = _edit(request, told, kept)
        problems = _problems(request, told, EDIT if edit is not None else "")
        return _page(request, told, [*problems, _comparison(told, kept, edit)], edit)
    if isinstance(kept, PolicyPlace):
        return _kept_page(request, told, kept)
    problem = silence(told, "policy", f"Nor can you read where it is kept: {shown(kept.why)}.")
    return PageContent("Policy", {"policy-problems": problem, "policy-commands": _commands()})


def _kept_page(request: ViewRequest, why: Unreachable, kept: PolicyPlace) -> PageContent:
    """Where the leader does not tell: what it reads, which may not be what it has loaded."""
    catalog = request.cluster.catalog
    document = kept_document(kept, catalog, request.now)
    instead = (
        f"Shown instead: {shown(kept.origin)}, which schedulers read; whether it is in force is not known."
    )
    problems = [silence(why, "policy", instead)]
    if document.refused is None:
        return _page(request, document, problems, None)
    return PageContent(
        "Policy",
        {
            "policy-problems": joined([*problems, _refused(request, document.refused, EDIT)]),
            "policy-edit": _edit_text(document.refused, kept_text(kept, catalog)),
            "policy-commands": _commands(),
        },
    )


def _page(
    request: ViewRequest, told: PolicyDocument, problems: Iterable[Markup], edit: PolicyDocument | None
) -> PageContent:
    defaults = default_arguments(told, request.cluster.catalog)
    return PageContent(
        "Policy",
        {
            "policy-problems": joined(problems),
            "policy": _in_force(request, told),
            "policy-actions": _actions(request, told, defaults),
            "policy-plugins": _tiers(request, told, defaults),
            "policy-warnings": _warnings(told),
            "policy-edit": _edit_text(told.refused, edit),
            "policy-text": _text(told),
            "policy-commands": _commands(),
        },
    )


# -- what is wrong


def _edit(
    request: ViewRequest, told: PolicyDocument, kept: PolicyPlace | Unreachable
) -> PolicyDocument | None:
    """The text that is kept for the leader, if that is another than it has loaded."""
    if isinstance(kept, Unreachable) or not kept.text.strip():
        return None
    edit = kept_text(kept, request.cluster.catalog)
    return edit if edit.digest != told.digest else None


def _problems(request: ViewRequest, told: PolicyDocument, prefix: str) -> list[Markup]:
    """What is wrong with the last edit, whose lines have ids with the prefix if there is one, and with plugins."""
    problems = []
    if told.refused is not None:
        problems.append(_refused(request, told.refused, prefix if told.refused.is_latest else ""))
    if told.set_aside:
        problems.append(_set_aside(request, told.set_aside))
    return problems


def _refused(request: ViewRequest, refused: RefusedEdit, prefix: str) -> Markup:
    """What was wrong with the last edit."""
    stands = (
        "It is what the file still says: the policy before it stays in force until it is put right."
        if refused.is_latest
        else "It was put right since."
    )
    title = "The last edit is wrong, and not in force" if refused.is_latest else "An earlier edit was refused"
    return card(
        title,
        notes(
            [
                joined(
                    ["Read ", age(refused.time, request.now), f" ago from {shown(refused.source)}. {stands}"]
                )
            ]
        ),
        _messages(refused.errors, refused.more_errors, prefix),
        wide=True,
    )


def _set_aside(request: ViewRequest, entries: Sequence[SetAside]) -> Markup:
    lines = [
        element(
            "li",
            element("strong", shortened(entry.plugin, NAME_LENGTH)),
            f": {shortened(entry.point, NAME_LENGTH)}, for ",
            age(entry.since, request.now),
            ": ",
            short_text(entry.why),
        )
        for entry in entries[:ENTRIES_SHOWN]
    ]
    return card(
        "Plugins set aside",
        element("ul", *lines, class_="messages"),
        note="These orders and scores failed for all jobs, and take no part in cycles until they answer again.",
        wide=True,
    )


def _comparison(told: PolicyDocument, kept: PolicyPlace | Unreachable, edit: PolicyDocument | None) -> Markup:
    """Whether the leader goes by what is kept for it."""
    if isinstance(kept, Unreachable):
        return notes([f"Whether it has been edited since is not known: {shown(kept.why)}."])
    if edit is None or (told.refused is not None and told.refused.is_latest):
        return Markup("")
    return card(
        "An edit is not in force yet",
        notes(
            [
                f"{shown(kept.origin)} says something else than the leader has loaded from {shown(told.source)}."
                " An edit is read within about a minute. If it stays like this, the leader reads another place."
            ]
        ),
        wide=True,
    )


def _messages(messages: Sequence[PolicyMessage], more: int, prefix: str) -> Markup:
    """Each with its line; with a prefix, a link to it."""
    lines = []
    for message in messages[:MESSAGES_SHOWN]:
        where = f"line {message.line:,}"
        place = [link(f"#{prefix}{message.line}", where) if prefix else where, ": "] if message.line else []
        lines.append(element("li", *place, short_text(message.text, 500)))
    left = more + max(len(messages) - MESSAGES_SHOWN, 0)
    if left > 0:
        lines.append(element("li", f"and {left:,} more"))
    return element("ul", *lines, class_="messages")


# -- what is in force


def _in_force(request: ViewRequest, told: PolicyDocument) -> Markup:
    loaded = (
        joined(
            [age(told.loaded, request.now), " ago, by ", shortened(told.leader or "the leader", NAME_LENGTH)]
        )
        if told.loaded
        else "not known"
    )
    metrics = [
        (f"Node usage: {shortened(key, NAME_LENGTH)}", short_text(value, VALUE_LENGTH))
        for key, value in list(told.metrics.items())[:ARGUMENTS_SHOWN]
    ]
    entries = [
        ("Source", short_text(told.source)),
        ("Loaded", loaded),
        ("Digest", element("code", shortened(told.digest, NAME_LENGTH))),
        *metrics,
        ("What queues deserve on these pages is computed by", short_text(request.content.policy_origin)),
    ]
    return card("In force" if told.loaded else "As it is kept", facts(entries), wide=True)


def _actions(request: ViewRequest, told: PolicyDocument, defaults: DefaultArguments) -> Markup:
    catalog = request.cluster.catalog.actions
    lines = [
        element(
            "li",
            element("strong", shortened(action.name, NAME_LENGTH)),
            " ",
            _first_line(catalog[action.name].doc) if action.name in catalog else NOT_KNOWN,
            _arguments(action, defaults.actions),
        )
        for action in told.actions[:ENTRIES_SHOWN]
    ]
    note = "Each cycle runs them in this order." if lines else "There are none: cycles decide nothing."
    return card(
        "Actions", element("ol", *lines, class_="actions"), *_more(told.more_actions, "actions"), note=note
    )


NOT_KNOWN = "It is none that this dashboard knows: a plugin or action of yours, perhaps."


def _tiers(request: ViewRequest, told: PolicyDocument, defaults: DefaultArguments) -> Markup:
    rows = [
        _plugin(request, number, plugin, defaults)
        for number, tier in enumerate(told.tiers[:ENTRIES_SHOWN], 1)
        for plugin in tier[:ENTRIES_SHOWN]
    ]
    titles = ("Tier", "Plugin", "What it does", "Arguments", "Switched off")
    return card(
        "Plugins",
        plain_table("plugins by tier", titles, rows, numbers=titles[:1], text=titles[2:4]),
        *_more(told.more_plugins, "plugins"),
        note="A tier is asked only where those before it have no opinion. Arguments in bold are not the defaults.",
        wide=True,
    )


def _plugin(
    request: ViewRequest, tier: int, plugin: PluginInForce, defaults: DefaultArguments
) -> list[object]:
    catalog = request.cluster.catalog
    known = catalog.plugins.get(plugin.name)
    usual = catalog.switches
    off = ", ".join(switch for switch in plugin.switched_off if usual.get(switch, True))
    return [
        f"{tier}",
        element("strong", shortened(plugin.name, NAME_LENGTH)),
        _first_line(known.__doc__ or "") if known is not None else NOT_KNOWN,
        _arguments(plugin, defaults.plugins),
        short_text(off, VALUE_LENGTH) if off else element("span", "-", class_="none"),
    ]


def _first_line(doc: str) -> str:
    return shortened(doc.strip().partition("\n")[0], 300)


def _arguments(extension: PluginInForce | ActionInForce, defaults: Mapping[str, dict[str, Any]]) -> Markup:
    """Those that differ from the defaults in bold, and in words."""
    if extension.arguments_left_out:
        return element("p", "Its arguments are too long to be told.", class_="note")
    known = defaults.get(extension.name)
    lines = []
    for key, value in list(extension.arguments.items())[:ARGUMENTS_SHOWN]:
        text = f"{shortened(key, NAME_LENGTH)}: {shortened(_value(value), VALUE_LENGTH)}"
        is_default = known is not None and key in known and known[key] == value
        lines.append(
            element("li", element("code", text), " ", element("small", "default"))
            if is_default
            else element("li", element("code", element("strong", text)))
        )
    left = len(extension.arguments) - ARGUMENTS_SHOWN
    if left > 0:
        lines.append(element("li", f"and {left:,} more"))
    return element("ul", *lines, class_="arguments") if lines else Markup("")


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _more(count: int, what: str) -> list[Markup]:
    return [notes([f"{count:,} more {what} are not told."])] if count else []


def _warnings(told: PolicyDocument) -> Markup:
    if not told.warnings:
        return Markup("")
    return card("What is odd about it", _messages(told.warnings, told.more_warnings, IN_FORCE), wide=True)


# -- texts


def _edit_text(refused: RefusedEdit | None, edit: PolicyDocument | None) -> Markup:
    """The text that is kept, where that is not the one in force."""
    if edit is None:
        return Markup("")
    title, wrong = "The text that is not in force yet", set[int]()
    if refused is not None and refused.is_latest:
        title, wrong = "The text that was refused", {error.line for error in refused.errors}
    text = numbered_text(edit.text, EDIT, wrong)
    return card(title, text, *_left_out(edit), note=short_text(edit.source), wide=True)


def _text(told: PolicyDocument) -> Markup:
    odd = {warning.line for warning in told.warnings}
    title = "The text in force" if told.loaded else "The text"
    return card(
        title,
        numbered_text(told.text, IN_FORCE, odd),
        *_left_out(told),
        note=short_text(told.source),
        wide=True,
    )


def _left_out(told: PolicyDocument) -> list[Markup]:
    return [notes([f"{told.text_left_out:,} more characters are not told."])] if told.text_left_out else []


def _commands() -> Markup:
    lines = [element("li", element("code", command), f": {what}") for command, what in COMMANDS]
    return card("In a terminal", element("ul", *lines, class_="commands"), wide=True)


ROUTES = (PageRoute(POLICY_PAGE, policy, "policy", personal=True, refresh=10.0),)
