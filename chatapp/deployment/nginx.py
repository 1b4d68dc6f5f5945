"""A site for nginx: ``python -m chatapp.deployment.nginx --name chat.example.org --port 8001 …``.

Prints the configuration; other machines are named by ``--server host:port``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
UPSTREAM = "palimpsest"
# Names, addresses, ports and paths, without characters that would end a directive.
_PLAIN = re.compile(r"[\w.:/\[\]*-]+")


def site(
    servers: Sequence[str],
    *,
    name: str,
    listen: str = "",
    certificate: str = "",
    key: str = "",
    body: str = "9m",
) -> str:
    """The configuration of one site.

    ``servers`` are ``host:port`` of the processes. ``listen`` is an address and port without TLS,
    for trials on one machine. ``certificate`` and ``key`` are paths. ``body`` is the largest
    request that nginx accepts, slightly more than the processes do. Raises ValueError for values
    that nginx would misread, and unless exactly one of ``listen`` and a certificate is given.
    """
    if bool(listen) == bool(certificate and key):
        raise ValueError("Give either a certificate with its key, or an address to listen on.")
    for value in (*servers, name, listen, certificate, key, body):
        if value and not _PLAIN.fullmatch(value):
            raise ValueError(f"Not a plain name, address or path: {value!r}")
    if not servers:
        raise ValueError("Name at least one process.")
    entrance = (
        [f"listen {listen};"]
        if listen
        else ["listen 443 ssl;", f"ssl_certificate {certificate};", f"ssl_certificate_key {key};"]
    )
    values = {
        "UPSTREAM": UPSTREAM,
        # Left out for a second after two failures, which is how long a restart takes.
        "SERVERS": _indented(f"server {one} max_fails=2 fail_timeout=1s;" for one in servers),
        "LISTEN": _indented(entrance),
        "NAME": name,
        "BODY": body,
    }
    template = (FOLDER / "nginx.conf.template").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda found: values[found[1]], template)


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Returns 2, with a sentence, for invalid arguments."""
    parser = argparse.ArgumentParser(prog="python -m chatapp.deployment.nginx", description=__doc__)
    parser.add_argument("--name", required=True, help="host name of the site")
    parser.add_argument(
        "--port", action="append", default=[], type=int, help="port of a process on this machine"
    )
    parser.add_argument(
        "--server", action="append", default=[], help="host:port of a process on another machine"
    )
    parser.add_argument("--certificate", default="", help="path of the certificate chain")
    parser.add_argument("--key", default="", help="path of the certificate's key")
    parser.add_argument(
        "--listen", default="", help="address:port to listen on without TLS, to try it out"
    )
    asked = parser.parse_args(arguments)
    servers = [*(f"127.0.0.1:{port}" for port in asked.port), *asked.server]
    try:
        written = site(
            servers,
            name=asked.name,
            listen=asked.listen,
            certificate=asked.certificate,
            key=asked.key,
        )
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.write(written)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
