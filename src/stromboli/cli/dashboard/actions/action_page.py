"""The page of an action: what will happen, the commands it stands for, whether the viewer may, and the form."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import Manifest
from stromboli.cli.dashboard.pages.object_elements import command_line
from stromboli.cli.dashboard.pages.page_content import PageContent, ViewRequest
from stromboli.cli.dashboard.pages.page_elements import card, link, notes, short_text
from stromboli.simulator.reports.page.markup import Markup, element

UID = "uid"
"""The field of a form that says which object was looked at."""


class ActionOffer(NamedTuple):
    """An action as it is offered."""

    title: str
    effects: Sequence[str]
    """What will happen, in sentences."""
    commands: Sequence[str]
    """That do the same; none as long as something is to be chosen first."""
    button: str
    target: Manifest
    back: str
    """The page of the object."""
    obstacle: str = ""
    """Why it cannot be done; then there is no button."""
    choice: Markup = Markup("")
    """What is chosen before, as fields of a form that leads to this page again."""
    fields: Markup = Markup("")
    """What the form of the action asks for or holds."""
    is_destructive: bool = False


def offer_page(request: ViewRequest, offer: ActionOffer) -> PageContent:
    """The page of an offer: what is chosen, what that does, by which commands, and the form that does it."""
    regions = {"effects": card("What will happen", notes(offer.effects, "reason"), wide=True)}
    if offer.choice:
        regions["choice"] = card("Choose", _choice(request, offer), wide=True)
    if offer.obstacle or offer.commands:
        regions["form"] = card(offer.title, _form(request, offer), wide=True)
    if offer.commands:
        regions["commands"] = card("The same as commands", *map(command_line, offer.commands), wide=True)
    return PageContent(offer.title, regions)


def _choice(request: ViewRequest, offer: ActionOffer) -> Markup:
    button = element("button", "Show what changes", type="submit")
    back = link(offer.back, "Back")
    return element(
        "form", offer.choice, button, " ", back, method="get", action=request.path, class_="action-form"
    )


def _form(request: ViewRequest, offer: ActionOffer) -> Markup:
    """It is sent to the address of this page, so that what was chosen is there still if it is refused."""
    back = link(offer.back, "Back")
    if offer.obstacle:
        told = element("p", short_text(offer.obstacle, 600), class_="warn", role="alert")
        return element("div", told, element("p", back))
    button = element("button", offer.button, type="submit", class_="danger" if offer.is_destructive else None)
    uid = hidden(UID, _uid(offer.target))
    return element(
        "form",
        uid,
        offer.fields,
        button,
        " ",
        back,
        method="post",
        action=request.address(),
        class_="action-form",
    )


def hidden(name: str, value: str) -> Markup:
    """A field that a form holds and does not show."""
    return element("input", type="hidden", name=name, value=value)


def check_target(target: Manifest, uid: str) -> None:
    """That it is the object that the viewer looked at, and no other of the same name."""
    if uid != _uid(target):
        raise ClusterError("another object has this name now: look at it first, and decide again")


def _uid(target: Manifest) -> str:
    return str((target.get("metadata") or {}).get("uid") or "")


def create_command(manifest: Manifest, namespace: str) -> str:
    """The kubectl command that creates an object, with the object on its standard input."""
    return f"kubectl create -n {shlex.quote(namespace)} -f - <<'END'\n{json.dumps(manifest)}\nEND"
