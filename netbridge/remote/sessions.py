"""The sessions of a broker: which one a link is attached to.

A session is on one link at a time.  The newest attempt of its program counts, so what an older link
still brings is nothing that anybody waits for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shmbroker.netbridge.link.deadlines import Deadlines
from shmbroker.netbridge.remote.action import Action, Disconnect, Say
from shmbroker.netbridge.remote.session import Session, SessionLimits
from shmbroker.netbridge.wire.frame import Attach, Attached, Frame

SESSIONS_MAX = 10_000
Done = list[tuple[int, Session | None, list[Action]]]
"""What is to be done: for which link (0: none), of which session."""


def _until(session: Session) -> float:
    return session.until


def _deadlines() -> Deadlines[Session]:
    return Deadlines(_until)


@dataclass(slots=True)
class Sessions:
    limits: SessionLimits = field(default_factory=SessionLimits)
    by_id: dict[bytes, Session] = field(default_factory=dict)
    links: dict[int, Session] = field(default_factory=dict)
    _numbers: dict[Session, int] = field(default_factory=dict)
    """The links, by session."""
    _deadlines: Deadlines[Session] = field(default_factory=_deadlines)

    def link_of(self, session: Session) -> int:
        return self._numbers.get(session, 0)

    def _put(self, link: int, session: Session) -> None:
        self.links[link], self._numbers[session] = session, link

    def _take(self, link: int) -> Session | None:
        session = self.links.pop(link, None)
        if session is not None:
            del self._numbers[session]
        return session

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
        session = self._take(link)
        if session is None:
            return []
        did = session.detached(now)
        self._deadlines.look(session)
        self._look(session)
        return [(0, session, did)]

    def tick(self, now: float) -> Done:
        late = self._deadlines.late(now)
        done: Done = [(0, each, each.tick(now)) for each in late]
        for each in late:
            self._look(each)
        return done

    def end(self, session: Session) -> Done:
        """The broker has ended it."""
        return self._end(session)

    @property
    def deadline(self) -> float:
        return self._deadlines.first

    def _attach(self, link: int, frame: Attach, now: float) -> Done:
        old = self.by_id.get(frame.session)
        if old is not None:
            newest = (old.generation, old.attempt)
            if (frame.generation, frame.attempt) <= newest:
                return [(link, None, [Disconnect("a newer link has its session")])]
        done: Done = []
        if old is not None:
            before = self.link_of(old)
            self._take(before)
            if before not in (0, link):
                done.append((before, None, [Disconnect("a newer link has its session")]))
        if frame.resumes:
            if old is not None and old.may_resume(frame):
                self._put(link, old)
                return [*done, (link, old, old.resume(frame))]
            gone = Attached(False, 0, int(self.limits.ttl * 1000))
            return [*done, *self._end(old), (link, None, [Say(gone)])]
        done += self._end(old)
        if len(self.by_id) >= SESSIONS_MAX:
            return [*done, (link, None, [Disconnect("there are too many sessions")])]
        made = Session(frame, self.limits, now)
        self.by_id[frame.session] = made
        self._put(link, made)
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
            self._take(self.link_of(session))
            self._deadlines.drop(session)
