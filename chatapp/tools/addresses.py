"""The addresses that tools may connect to: one rule, applied at each connection.

A name is resolved once, and the connection goes to the very address that was checked. So a name
whose answer changes between two look-ups (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

#: In a list of hosts: every host.
ANY_HOST = "*"

# All that the Internet routes in IPv6; what else looks global there is reserved or out of use.
_ROUTED = IPv6Network("2000::/3")
# 6to4, whose addresses hold an IPv4 address that a relay connects to.
_6TO4 = IPv6Network("2002::/16")
# NAT64 (RFC 6052): the last four bytes are the IPv4 address that is connected to.
_NAT64 = IPv6Network("64:ff9b::/96")
# Where clouds serve keys and instructions to their machines, besides link-local addresses: Amazon
# and Google (IPv6), Azure, Alibaba, Oracle.
_OF_CLOUDS = (
    ip_network("fd00:ec2::/32"),
    ip_network("fd20:ce::/32"),
    ip_network("168.63.129.16/32"),
    ip_network("100.100.100.200/32"),
    ip_network("192.0.0.192/32"),
)


class AddressRefused(OSError):
    """A connection would go to an address that is not allowed; nothing was sent."""

    def __init__(self, address: str, *, always: bool) -> None:
        """``always``: the address is refused to everybody, not only because it is private."""
        super().__init__(f"{address} is {'never connected to' if always else 'a private address'}")
        self.always = always


def may_connect(address: str, *, private: bool) -> bool:
    """Whether a connection may go to an IP address; with ``private`` also inside one's network.

    Addresses where clouds serve the keys of their machines, as link-local ones, are refused always,
    and so are those that name no single machine.
    """
    ip = _innermost(ip_address(address.partition("%")[0]))
    if any(ip in network for network in _OF_CLOUDS):
        return False
    if ip.is_unspecified or ip.is_multicast or ip.is_link_local:
        return False
    return private or _is_public(ip)


def _innermost(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for, or the address itself."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.ipv4_mapped or ip


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    if isinstance(ip, IPv6Address) and (ip not in _ROUTED or ip in _6TO4):
        return False
    return ip.is_global


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The hosts that one client may reach."""

    hosts: frozenset[str]
    """Names as in an address, in lower case; ``ANY_HOST`` for all."""
    private: bool = False
    """Also at addresses inside one's network, and on this computer."""

    def allows(self, host: str) -> bool:
        """Whether requests may name this host."""
        return ANY_HOST in self.hosts or host.lower().rstrip(".") in self.hosts

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for a connection to a resolved address, as ``getaddrinfo`` describes it.

        Raises AddressRefused.
        """
        family, kind, protocol, _, address = info
        if not may_connect(str(address[0]), private=self.private):
            always = not may_connect(str(address[0]), private=True)
            raise AddressRefused(str(address[0]), always=always)
        return socket.socket(family, kind, protocol)
