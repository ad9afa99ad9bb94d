"""Somebody who asks a console over HTTP: a program, or who pretends to be a browser."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

PATIENCE_SECONDS = 60


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Visitor:
    url: str
    cookie: str = ""
    csrf: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    trust: ssl.SSLContext | None = None
    """Of a console with TLS."""

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def ask(
        self, method: str, path: str, body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:  # fmt: skip
        connection = self._connection()
        sent = {"Cookie": self.cookie} if self.cookie else {}
        try:
            connection.request(method, path, body, {**sent, **self.headers, **(headers or {})})
            got = connection.getresponse()
            return Answer(got.status, got.headers, got.read())
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        place = urlsplit(self.url)
        where, patience = (str(place.hostname), place.port), PATIENCE_SECONDS
        if place.scheme == "https":
            return http.client.HTTPSConnection(*where, timeout=patience, context=self.trust)
        return http.client.HTTPConnection(*where, timeout=patience)

    def get(self, path: str, **parameters: object) -> Answer:
        pairs = [f"{key}={quote(str(each), safe='')}" for key, each in parameters.items()]
        return self.ask("GET", f"{path}?{'&'.join(pairs)}" if pairs else path)

    def post(
        self, path: str, content: object, headers: Mapping[str, str] | None = None
    ) -> Answer:
        sent = {"Content-Type": "application/json"}
        if self.csrf:
            sent["X-CSRF-Token"] = self.csrf
        return self.ask("POST", path, json.dumps(content).encode(), {**sent, **(headers or {})})

    def reads(self, path: str, **parameters: object) -> Any:
        """What has to be answered."""
        answer = self.get(path, **parameters)
        assert answer.status == 200, (path, answer.status, answer.body)
        return answer.json

    def does(self, verb: str, **given: object) -> Any:
        answer = self.post(f"/api/do/{verb}", given)
        assert answer.status == 200, (verb, answer.status, answer.body)
        return answer.json

    def log_in(self, **given: object) -> Answer:
        answer = self.post("/api/login", given)
        if answer.status == 200:
            self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
            self.csrf = answer.json["csrf"]
        return answer


def refused(answer: Answer, status: int, word: str) -> None:
    assert (answer.status, answer.json["error"]) == (status, word), answer.body
