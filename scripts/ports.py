#!/usr/bin/env python3
"""Prints a port of this machine that is free, for a server whose address must be known before it starts."""

import random
import socket

# below the ports that Linux gives to connections and to servers that leave the choice to it: none of them takes it meanwhile
PORTS = range(10_000, 32_000)


def free_port():
    """A port that nobody listens at."""
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


if __name__ == "__main__":
    print(free_port())
