"""Brokers in two racks, with a wire between them that takes its time and loses packets.

    near ══ wire: 1, 10, 50 ms one way, 0.1 % lost ══ far, and its backup on the same store

    carrier       near: a queue  ──────────────► far: a queue        what a link can at most
    agent         near: an exchange, mode 2 ───► far: the exchange   to `masterslave:(far,far2)`
    link          near: a consumer ◄─ demand ─── far: a queue        of `masterslave:(far,far2)`
    activemq      near: a queue  ──────────────► far: a queue        a network bridge, the same uri
    rabbitmq      near: a queue  ──────────────► far: a queue        a shovel

All queues are durable and both ends sync, bodies have 256 bytes.  Racks are network namespaces, so
this is for root.  Other brokers are Debian's, with `--peers`, and are installed if they may be.
"""
