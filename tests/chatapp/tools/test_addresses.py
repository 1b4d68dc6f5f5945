"""Where tools may connect to."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.tools.addresses import AddressRefused, Reach, may_connect

PUBLIC = ("8.8.8.8", "93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")
INSIDE = (
    "127.0.0.1",
    "127.8.9.10",
    "10.1.2.3",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "2001:db8::1",
    "198.18.0.1",
    "240.0.0.1",
)
NEVER = (
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "fe80::1",
    "fe80::1%eth0",
    "0.0.0.0",
    "::",
    "::ffff:0.0.0.0",
    "224.0.0.1",
    "ff02::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "168.63.129.16",
    "::ffff:168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_connected_to(address: str) -> None:
    assert may_connect(address, private=False)
    assert may_connect(address, private=True)


@pytest.mark.parametrize("address", INSIDE)
def test_t03_private_ones_only_when_an_administrator_says_so(address: str) -> None:
    """T03.

    Breaks when: ``_innermost`` no longer looks into mapped or NAT64 addresses, or ``_is_public``
    trusts ``is_global`` outside of 2000::/3.
    """
    assert not may_connect(address, private=False)
    assert may_connect(address, private=True)


@pytest.mark.parametrize("address", NEVER)
def test_t03_some_never(address: str) -> None:
    """T03: there a cloud serves its machines' keys.

    Breaks when: ``private`` is asked first, or a cloud's own address is taken for any other.
    """
    assert not may_connect(address, private=False)
    assert not may_connect(address, private=True)


@given(st.ip_addresses(v=4))
def test_an_address_in_another_clothing_is_the_same(address: IPv4Address) -> None:
    """T03.

    Breaks when: ``_innermost`` returns the address as it is.
    """
    plain = may_connect(str(address), private=False)
    mapped = IPv6Address(int(address) | 0xFFFF << 32)
    translated = IPv6Address(int(IPv6Address("64:ff9b::")) | int(address))
    assert may_connect(str(mapped), private=False) == plain
    assert may_connect(str(translated), private=False) == plain


def test_only_configured_hosts() -> None:
    reach = Reach(hosts=frozenset({"tools.example.org"}))
    assert reach.allows("Tools.Example.org.")
    assert not reach.allows("example.org")
    assert not reach.allows("tools.example.org.evil.example")
    assert Reach(hosts=frozenset({"*"})).allows("anything.example")


def test_a_socket_is_made_for_an_allowed_address_only() -> None:
    reach = Reach(hosts=frozenset({"*"}))
    info = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))
    with pytest.raises(AddressRefused, match=r"127\.0\.0\.1"):
        reach.open_socket(info)
    with Reach(hosts=frozenset({"*"}), private=True).open_socket(info) as made:
        assert made.family == socket.AF_INET
