"""What OpenTelemetry puts beside a message: it goes everywhere as it is."""

from __future__ import annotations

from typing import Final

TRACE: Final = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "vendor=00f067aa0ba902b7",
}
