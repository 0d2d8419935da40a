"""What a page is asked for, and what it comes to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, urlencode

from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.dashboard.watched_cluster import ClusterView, WatchedCluster
from stromboli.cli.live.cluster_content import ClusterContent
from stromboli.cli.live.cluster_records import ClusterRecords
from stromboli.simulator.reports.page.markup import Markup

PASSING = frozenset({"done"})
"""Parameters that say what has just happened: they are in no link of the page."""


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What somebody wants to see: an address within the cluster as he may see it."""

    path: str
    names: Mapping[str, str]
    """Of objects, from the path; checked to be names of objects."""
    query: Mapping[str, str]
    """Bounded in number and length, and in no other way checked."""
    viewer: Viewer
    cluster: WatchedCluster
    view: ClusterView
    now: float

    @property
    def records(self) -> ClusterRecords:
        return self.view.records

    @property
    def content(self) -> ClusterContent:
        return self.view.content

    def session_in(self, namespace: str) -> ClusterSession:
        """The session of the viewer, for a namespace."""
        session = self.viewer.session
        return ClusterSession(session.client, session.running, namespace, namespace_given=True)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of some values of the query; the first unless it is another."""
        given = self.query.get(name, "")
        return given if given in choices else choices[0]

    def number(self, name: str, least: int, most: int) -> int:
        """A whole number of the query; the least unless it is another one within the bounds."""
        given = self.query.get(name, "")
        return min(max(int(given), least), most) if given.isdecimal() and len(given) < 10 else least

    def address(self, **changes: object) -> str:
        """This address with other values in the query; an empty one takes a value away."""
        kept = {name: value for name, value in self.query.items() if name not in PASSING}
        return address(self.path, **{**kept, **changes})


class PageContent(NamedTuple):
    """A page: regions that are updated on their own, by id, in order."""

    title: str
    regions: dict[str, Markup]
    status: int = 200


Render = Callable[[ViewRequest], Awaitable[PageContent]]


class PageRoute(NamedTuple):
    """Pages of one kind."""

    pattern: str
    """Of the path, such as `/jobs/{namespace}/{name}`."""
    render: Render
    section: str
    """The entry of the navigation that it belongs to."""
    personal: bool = False
    """Whether it reads with the rights of the viewer, and so cannot be shared with all who see the same records."""
    refresh: float = 0.0
    """Seconds after which it is rendered again though no record has changed; 0 if that would be in vain."""


class NotThere(Exception):
    """The page is about something that does not exist, or that the viewer may not see; the message says which."""


def address(path: str, **query: object) -> str:
    """The address of a page; parts of the query that are empty are left out."""
    given = {name: str(value) for name, value in query.items() if value not in ("", None)}
    return f"{path}?{urlencode(given)}" if given else path


def job_address(namespace: str, name: str, kind: str = "job") -> str:
    """Of a Job, or of another gang by its PodGroup."""
    room = "jobs" if kind == "job" else "podgroups"
    return f"/{room}/{quote(namespace, safe='')}/{quote(name, safe='')}"


def queue_address(name: str) -> str:
    return f"/queues/{quote(name, safe='')}"


def node_address(name: str) -> str:
    return f"/nodes/{quote(name, safe='')}"


def pod_address(namespace: str, name: str) -> str:
    return f"/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"


def hyper_node_address(name: str) -> str:
    return f"/topology/{quote(name, safe='')}"
