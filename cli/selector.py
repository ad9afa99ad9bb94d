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
    from shmbroker.ipc.selector.copied import matches_copied

    return selector is None or matches_copied(selector, message)
