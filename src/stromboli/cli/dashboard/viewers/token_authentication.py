"""In a cluster: a viewer is known by a bearer token, and sees what the API server lets its user list.

The dashboard's own service account watches. Whose token it is says a TokenReview, what he may see access reviews; what
is read or changed for him goes with his own token.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec
from aiohttp import web

from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.viewers.browser_sessions import BrowserSessions
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.dashboard.viewers.viewer_authentication import NotAdmitted
from stromboli.cli.dashboard.viewers.viewer_rights import ReviewedRights
from stromboli.cli.dashboard.watched_cluster import WatchedCluster
from stromboli.daemon.delegated_reviews import Subject, review_token
from stromboli.daemon.log_format import about
from stromboli.kube.api_client import Client
from stromboli.kube.credentials import Identity, StaticCredentials, bearer
from stromboli.kube.request import ApiError, NoResponse

log = logging.getLogger(__name__)

TOKEN_FACTS = "authentication.kubernetes.io/"
"""Begins the names of what an API server says of a token besides its user."""
REVIEWED_SECONDS = 60.0
"""For which what a viewer may see holds, until the API server is asked again."""
MOST_TOKENS = 512
"""Whose viewers are remembered; the one that was used least recently goes for a new one."""
MOST_REVIEWED = 32
"""Tokens that are not known yet and about which the API server is being asked; beyond that they are refused."""
TRUSTED_SECONDS = 300.0
"""For which it holds while the API server cannot be asked."""
PROXIED_SECONDS = 3600.0
"""After which a token is forgotten that came in a header."""
LISTED_SECONDS = 10.0
"""For which a viewer waits at first until it is known which namespaces there are."""
UNLISTED_SECONDS = 2.0
"""After which the API server is asked again where that was not known yet."""
LONGEST_TOKEN = 16 * 1024


@dataclass(slots=True)
class _TokenHolder:
    """Somebody with a token, and what is known of him."""

    token: str
    viewer: Viewer | None = None
    reviewed: float = 0.0
    used: float = 0.0
    is_proxied: bool = False
    """Whether a proxy sent it, so that there may be no cookie for it."""
    rights: ReviewedRights | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class TokenAuthentication:
    """Everybody whose token the API server knows."""

    asks_for_token = True
    help = (
        "Paste a token, such as the command kubectl create token NAME prints. You see what its user may list."
    )

    def __init__(
        self, cluster: WatchedCluster, cookie: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._holders: dict[bytes, _TokenHolder] = {}
        """By the digest of their tokens, the one that was used least recently first."""
        self._reviewed: dict[bytes, _TokenHolder] = {}
        """Those who are not known yet, so that nobody without a token makes us forget those who have one."""
        self._browsers: BrowserSessions[str] = BrowserSessions(cookie, clock)

    async def viewer(self, request: web.Request) -> Viewer | None:
        """By the header that a proxy adds, else by the cookie."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        is_proxied = scheme.lower() == "bearer"
        given = token.strip() if is_proxied else self._browsers.find(request)
        return await self._viewer(given, is_proxied) if given else None

    async def admit(self, request: web.Request, given: str, response: web.StreamResponse) -> None:
        token = given.strip()
        if (known := self._holders.get(_digest(token))) is not None:
            known.reviewed, known.rights = -math.inf, None  # he may have more rights now
        viewer = await self._viewer(token)
        if viewer is None:
            raise NotAdmitted("The API server does not know this token, or it has expired.")
        secure = request.secure or request.headers.get("X-Forwarded-Proto", "") == "https"
        self._browsers.begin(request, viewer.key, token, response, secure)

    async def leave(self, request: web.Request, response: web.StreamResponse) -> None:
        self._browsers.end(request, response)
        await self.sweep()

    async def sweep(self) -> None:
        """Forget tokens that no browser is let in with, and that no proxy has sent for a while."""
        self._browsers.sweep()
        kept, oldest = self._browsers.holders, self._clock() - PROXIED_SECONDS
        for key, holder in list(self._holders.items()):
            if holder.token not in kept and (not holder.is_proxied or holder.used < oldest):
                await _close(self._holders.pop(key))

    @property
    def token_count(self) -> int:
        return len(self._holders)

    async def close(self) -> None:
        for holder in self._holders.values():
            await _close(holder)

    async def _viewer(self, token: str, is_proxied: bool = False) -> Viewer | None:
        if not token.isascii() or not token.isprintable() or len(token) > LONGEST_TOKEN:
            return None
        key = _digest(token)
        holder = self._holders.get(key) or self._reviewed.get(key) or self._new_holder(key, token)
        holder.used = self._clock()
        holder.is_proxied = holder.is_proxied or is_proxied
        try:
            async with holder.lock:
                if holder.viewer is None or self._clock() - holder.reviewed > REVIEWED_SECONDS:
                    await self._review(holder)
        finally:
            self._reviewed.pop(key, None)
        await self._remember(key, holder)
        return holder.viewer

    def _new_holder(self, key: bytes, token: str) -> _TokenHolder:
        if len(self._reviewed) >= MOST_REVIEWED:
            raise NotAdmitted("Many others log in just now; try again in a moment.")
        holder = self._reviewed[key] = _TokenHolder(token)
        return holder

    async def _remember(self, key: bytes, holder: _TokenHolder) -> None:
        """As the one that was used last; not at all if nobody has this token."""
        self._holders.pop(key, None)
        if holder.viewer is None:
            return
        self._holders[key] = holder
        while len(self._holders) > MOST_TOKENS:
            await _close(self._holders.pop(next(iter(self._holders))))

    async def _review(self, holder: _TokenHolder) -> None:
        """Ask the API server who it is and what he may see; again soon if not all is listed yet."""
        api, watches = self._cluster.session.client, self._cluster.watches
        try:
            subject = await review_token(api, holder.token)
            if subject is None:
                await _close(holder)
                return
            await self._cluster.start()
            if holder.viewer is None:
                await self._listed()
            is_final, records = watches.is_listed, watches.records
            namespaces = {key.partition("/")[0] for key in (*records.groups, *records.jobs, *records.pods)}
            if holder.rights is None or holder.rights.subject != subject:
                holder.rights = ReviewedRights(api, subject, self._clock)
            visibility = await holder.rights.visibility(namespaces)
        except (ApiError, NoResponse, msgspec.MsgspecError) as error:
            log.warning("the API server does not say who a viewer is: %s", error)
            if holder.viewer is not None and self._clock() - holder.reviewed < TRUSTED_SECONDS:
                return
            raise NotAdmitted(
                "The API server does not say who you are; the log of the dashboard says why."
            ) from None
        holder.reviewed = self._clock() - (0.0 if is_final else REVIEWED_SECONDS - UNLISTED_SECONDS)
        if holder.viewer is None:
            log.info("viewer", extra=about(user=subject["user"]))
        session = holder.viewer.session if holder.viewer is not None else self._session(holder.token)
        holder.viewer = Viewer(subject["user"], _identity(subject), session, visibility)

    async def _listed(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTED_SECONDS):
                await self._cluster.watches.listed()

    def _session(self, token: str) -> ClusterSession:
        """A session of the cluster with the viewer's token and nothing of ours, such as files of this machine."""
        own = self._cluster.session
        access = replace(own.client.access, credentials=StaticCredentials(Identity((bearer(token),))))
        return replace(own, client=Client(access), running=None)


def _identity(subject: Subject) -> str:
    """The same for all tokens of a user: what tells one from another, such as its number, gives no rights."""
    extra = subject.get("extra") or {}
    rights = {name: value for name, value in extra.items() if not name.startswith(TOKEN_FACTS)}
    named = {**subject, "extra": rights}
    return hashlib.sha256(msgspec.json.encode(named, order="deterministic")).hexdigest()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()


async def _close(holder: _TokenHolder) -> None:
    if holder.viewer is not None:
        await holder.viewer.session.client.close()
        holder.viewer = None
