"""A call that was begun: it ends with an outcome, or with the error of it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import TEXTS
from shmbroker.ipc.base.errors import (
    AlreadyDealtWith,
    ConnectionClosed,
    DeliveryRevoked,
    Error,
    QueueFull,
    TransactionRolledBack,
    Unconfirmed,
)
from shmbroker.netbridge.remote.body import raised
from shmbroker.netbridge.remote.outcome import End, Outcome, Token, Why
from shmbroker.netbridge.wire.malformed import Malformed

if TYPE_CHECKING:
    from shmbroker.netbridge.client.session import Session

BY_WHY: dict[Why, type[Error]] = {
    Why.REVOKED: DeliveryRevoked,
    Why.DEALT_WITH: AlreadyDealtWith,
    Why.ROLLED_BACK: TransactionRolledBack,
}


class Pending:
    """Await it once; whoever does not still has it done."""

    __slots__ = (
        "_session", "count", "generation", "id", "is_refused", "opens", "outcome", "signal",
        "takes", "what",
    )  # fmt: skip

    def __init__(self, session: Session, what: str, count: int = 1) -> None:
        self._session = session
        self.count = count
        self.what = what
        self.id = self.generation = 0
        self.is_refused = False
        """It was called in the thread that would have begun it, and is not begun."""
        self.takes = False
        """Messages, which are in our hand with its outcome."""
        self.opens = 0
        """A target, which is ours to leave with its outcome."""
        self.outcome: Outcome | None = None
        self.signal = session.way.signal()

    def end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.signal.set()

    def cancel(self) -> None:
        self._session.cancel(self)

    def __await__(self) -> Generator[Any, None, Outcome]:
        return self._wait().__await__()

    async def _wait(self) -> Outcome:
        try:
            self._session.check_may_wait(self.what)
            await self._session.way.wait(self.signal)
        except BaseException:  # cancelled, or Ctrl-C
            self.cancel()
            raise
        assert self.outcome is not None
        if self.outcome.end is not End.OK:
            error = self._error(self.outcome)
            if self._session.failure is not None:
                error.__cause__ = self._session.failure
            raise error
        return self.outcome

    def names(self, error: Unconfirmed, token: Token) -> None:
        """It is what is asked by, again."""
        error.token = token
        error.ask = self._session.retries(token, self.what)

    def _error(self, outcome: Outcome) -> Error:
        if outcome.end is End.UNKNOWN:
            error = self._unknown(outcome)
            if outcome.token is not None:
                self.names(error, outcome.token)
            return error
        error_there = raised(outcome.code, outcome.body)
        if outcome.why is Why.ANSWERED:
            error_there.published = outcome.value if outcome.code in TEXTS else 0
            return error_there
        if isinstance(error_there, QueueFull):  # of a reject: in hand it is no more, as if revoked
            error_there.code = QueueFull.code
            return error_there
        if outcome.why is Why.MALFORMED:
            said = bytes(outcome.body).decode()
            return Malformed(f"{self.what}: {outcome.why.value}: {said}")
        kind = BY_WHY.get(outcome.why, ConnectionClosed)
        return kind(f"{self.what}: {outcome.why.value}; it was not done")

    def _unknown(self, outcome: Outcome) -> Unconfirmed:
        if outcome.why is Why.ANSWERED:  # the broker says what it has waited for
            error = raised(outcome.code, outcome.body)
            if isinstance(error, Unconfirmed):
                return error
        return Unconfirmed(f"{self.what}: {outcome.why.value}; whether it was done is unknown")


class Several:
    """Calls that were begun one behind the other.  Await it once, for the outcome of the last one.

    It waits until all have ended.  Its error is the first `Unconfirmed`, with one token for all
    that is unknown; if there is none, the first error.  If it is cancelled, all of them are.
    """

    def __init__(self, begun: Sequence[Pending]) -> None:
        self._begun = begun

    def __await__(self) -> Generator[Any, None, Outcome]:
        return self._wait().__await__()

    async def _wait(self) -> Outcome:
        done = 0
        errors: list[Error] = []
        for at, each in enumerate(self._begun):
            try:
                outcome = await each
                done += 0 if errors else each.count
            except Error as error:
                done += 0 if errors else error.published
                errors.append(error)
            except BaseException:
                for behind in self._begun[at + 1 :]:
                    behind.cancel()
                raise
        if not errors:
            return outcome
        unknown = [each for each in errors if isinstance(each, Unconfirmed)]
        tokens = [each.token for each in unknown if isinstance(each.token, Token)]
        told = (unknown or errors)[0]
        told.published = done
        if tokens:
            self._begun[0].names(unknown[0], replace(tokens[0], behind=tuple(tokens[1:])))
        raise told
