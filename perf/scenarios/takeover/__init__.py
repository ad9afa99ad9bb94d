"""How long a program on another host waits when the broker that it is connected to is lost."""
