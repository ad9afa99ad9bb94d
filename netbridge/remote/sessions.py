"""The sessions of a broker: which one a link is attached to.

A session is on one link at a time.  The newest attempt of its program counts, so what an older link
still brings is nothing that anybody waits for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shmbroker.netbridge.remote.action import Action, Disconnect, Say
from shmbroker.netbridge.remote.call import NEVER
from shmbroker.netbridge.remote.session import Session, SessionLimits
from shmbroker.netbridge.wire.frame import Attach, Attached, Frame

SESSIONS_MAX = 10_000
Done = list[tuple[int, Session | None, list[Action]]]
"""What is to be done: for which link (0: none), of which session."""


@dataclass(slots=True)
class Sessions:
    limits: SessionLimits = field(default_factory=SessionLimits)
    by_id: dict[bytes, Session] = field(default_factory=dict)
    links: dict[int, Session] = field(default_factory=dict)

    def link_of(self, session: Session) -> int:
        for link, each in self.links.items():
            if each is session:
                return link
        return 0

    def received(self, link: int, frame: Frame, now: float) -> Done:
        """A program has said something on this link."""
        session = self.links.get(link)
        if isinstance(frame, Attach):
            if session is None or session.id == frame.session:
                return self._attach(link, frame, now)
            return [(link, None, [Disconnect("a link has one session")])]
        if session is None:
            return [(link, None, [Disconnect("it is attached to no session")])]
        did = session.received(frame)
        self._look(session)
        return [(link, session, did)]

    def detached(self, link: int, now: float) -> Done:
        session = self.links.pop(link, None)
        if session is None:
            return []
        did = session.detached(now)
        self._look(session)
        return [(0, session, did)]

    def tick(self, now: float) -> Done:
        late = [each for each in self.by_id.values() if now >= each.until]
        done: Done = [(0, each, each.tick(now)) for each in late]
        for each in late:
            self._look(each)
        return done

    def end(self, session: Session) -> Done:
        """The broker has ended it."""
        return self._end(session)

    @property
    def deadline(self) -> float:
        return min((each.until for each in self.by_id.values()), default=NEVER)

    def _attach(self, link: int, frame: Attach, now: float) -> Done:
        old = self.by_id.get(frame.session)
        if old is not None:
            newest = (old.generation, old.attempt)
            if (frame.generation, frame.attempt) <= newest:
                return [(link, None, [Disconnect("a newer link has its session")])]
        done: Done = []
        if old is not None:
            before = self.link_of(old)
            self.links.pop(before, None)
            if before not in (0, link):
                done.append((before, None, [Disconnect("a newer link has its session")]))
        if frame.resumes:
            if old is not None and old.may_resume(frame):
                self.links[link] = old
                return [*done, (link, old, old.resume(frame))]
            gone = Attached(False, 0, int(self.limits.ttl * 1000))
            return [*done, *self._end(old), (link, None, [Say(gone)])]
        done += self._end(old)
        if len(self.by_id) >= SESSIONS_MAX:
            return [*done, (link, None, [Disconnect("there are too many sessions")])]
        made = Session(frame, self.limits, now)
        self.by_id[frame.session] = self.links[link] = made
        return [*done, (link, made, made.begin())]

    def _end(self, session: Session | None) -> Done:
        if session is None:
            return []
        did = session.end()
        self._look(session)
        return [(0, session, did)]

    def _look(self, session: Session) -> None:
        if session.is_over:
            if self.by_id.get(session.id) is session:
                del self.by_id[session.id]
            self.links = {link: each for link, each in self.links.items() if each is not session}
