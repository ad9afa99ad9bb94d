"""The option `--selector`, and which of the messages that are only looked at it selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from shmbroker.ipc.message.copied import CopiedMessage
    from shmbroker.ipc.selector.selector import Selector


class SelectorText(click.ParamType["Selector"]):
    name = "selector"

    def convert(
        self, value: str | Selector, param: click.Parameter | None, ctx: click.Context | None
    ) -> Selector:
        from shmbroker.ipc.base.errors import SelectorError
        from shmbroker.ipc.selector.selector import Selector

        try:
            return value if isinstance(value, Selector) else Selector(value)
        except SelectorError as error:
            self.fail(str(error), param, ctx)


selector_option = click.option(
    "--selector", metavar="CONDITION", type=SelectorText(),
    help="Only messages that match, e.g. \"colour = 'red' AND price < 5\".",
)  # fmt: skip


def selects(selector: Selector | None, message: CopiedMessage) -> bool:
    if selector is None:
        return True
    expires = message.expires_at
    given = {} if message.priority is None else {"priority": message.priority}
    return selector.matches(
        message.properties,
        key=message.key or "",
        size=len(message.body),
        deliveries=message.deliveries,
        published_at=message.published_at,
        expires_at=round(expires.timestamp() * 1e9) if expires else 0,
        **given,
    )
