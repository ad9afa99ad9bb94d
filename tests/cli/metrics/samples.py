"""The samples of a page of metrics."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families


class Samples:
    def __init__(self, page: str) -> None:
        self.found = [
            sample
            for family in text_string_to_metric_families(page)
            for sample in family.samples
        ]  # fmt: skip

    def all(self, name: str, **labels: str) -> list[float]:
        return [
            each.value
            for each in self.found
            if each.name == f"shmbroker_{name}" and labels.items() <= each.labels.items()
        ]

    def of(self, name: str, **labels: str) -> float:
        [value] = self.all(name, **labels)
        return value

    def state(self, name: str, label: str = "state") -> str:
        """The only one of these states that it is in."""
        [found] = [
            each.labels[label]
            for each in self.found
            if each.name == f"shmbroker_{name}" and each.value == 1
        ]
        return found
