"""The switch that forbids real model calls."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.network import RealNetworkForbidden

# Set aside for documentation: nobody has it.
ELSEWHERE = ("192.0.2.1", 443)


def test_another_computer_is_out_of_reach() -> None:
    with socket.socket() as here, pytest.raises(RealNetworkForbidden):
        here.connect(ELSEWHERE)
    with socket.socket() as here, pytest.raises(RealNetworkForbidden):
        here.connect_ex(ELSEWHERE)


async def test_also_for_the_event_loop() -> None:
    with pytest.raises(RealNetworkForbidden):
        await asyncio.open_connection(*ELSEWHERE)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_computer_is_not(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.create_connection((host, listener.getsockname()[1])).close()
