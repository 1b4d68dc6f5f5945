"""The files for several processes: nginx takes the site, and what cannot be is refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from django.conf import settings
from django.urls import reverse

from chatapp.deployment import daphne, entrance
from chatapp.deployment.nginx import FOLDER, main, site
from tests.ports import free_port
from tests.services import ensure_nginx


def test_it_works(tmp_path: Path) -> None:
    """nginx itself reads the site for two processes, with a certificate that it looks for."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    making = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=chat -keyout key.pem"
    command = [*making.split(), "-out", "certificate.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    written = site(
        ["127.0.0.1:8001", "10.0.0.2:8001"],
        name="chat.example.org",
        certificate=str(certificate),
        key=str(key),
    ).replace("443", f"127.0.0.1:{free_port()}")
    whole = tmp_path / "nginx.conf"
    whole.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{written}\n}}\n")
    command = [ensure_nginx(), "-t", "-p", str(tmp_path), "-c", str(whole), "-e", "stderr"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "syntax is ok" in done.stderr, done.stderr


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--name", "chat", "--port", "8001", "--server", "b:1", "--listen", "[::]:80"]) == 0
    printed = capsys.readouterr().out
    assert "server 127.0.0.1:8001 max_fails" in printed
    assert "server b:1 max_fails" in printed
    assert "@" not in printed


@pytest.mark.parametrize(
    "wrong",
    [
        {"listen": ""},
        {"listen": "1:80", "certificate": "c", "key": "k"},
        {"listen": "", "certificate": "c"},
        {"listen": "1:80", "name": "a; return 200"},
        {"listen": "1:80", "name": "a b"},
        {"listen": "1:80", "servers": []},
    ],
)
def test_what_nginx_would_misread_is_refused(wrong: dict[str, object]) -> None:
    values = {"name": "chat", "servers": ["127.0.0.1:1"], **wrong}
    with pytest.raises(ValueError, match=r"\w"):
        site(values.pop("servers"), **values)  # type: ignore[arg-type]


def test_w09_pings_come_more_often_than_a_proxy_gives_up() -> None:
    """Breaks when: PING_INTERVAL is raised above what the site waits for."""
    waits = re.search(r"proxy_read_timeout (\d+)s", (FOLDER / "nginx.conf.template").read_text())
    assert waits is not None
    assert int(waits[1]) > 2 * (daphne.PING_INTERVAL + daphne.PING_TIMEOUT)


def test_a_unit_leaves_running_replies_the_time_to_be_stored() -> None:
    """Breaks when: SHUTDOWN_TIMEOUT is raised above what systemd waits for."""
    unit = (FOLDER / "palimpsest@.service").read_text()
    waits = re.search(r"TimeoutStopSec=(\d+)", unit)
    assert waits is not None
    assert int(waits[1]) > daphne.SHUTDOWN_TIMEOUT
    assert "--no-prepare --behind-proxy" in unit


def test_no_token_is_in_a_log_of_the_proxy() -> None:
    """Those of sign-in links and of shared links.

    Breaks when: the links' own location is left out, or logs."""
    text = site(["127.0.0.1:8001"], name="chat.example.org", listen="127.0.0.1:8000")
    own = re.search(r"location ~ (\S+) {(.*?)}", text, re.DOTALL)
    assert own is not None
    for path in (reverse("signin-link", args=["MQ", "token"]), reverse("shared", args=["token"])):
        assert re.search(own[1], path)
    assert "access_log off;" in own[2]
    assert "error_log /dev/null;" in own[2]
    # nginx inherits these only where a location has none of its own.
    assert "proxy_set_header" not in own[2]


def test_bodies_pass_the_proxy_as_far_as_the_processes_take_them() -> None:
    """Breaks when: the proxy's limit is below the program's, whose sentence nobody would see."""
    text = site(["127.0.0.1:8001"], name="chat.example.org", listen="127.0.0.1:8000")
    limit = re.search(r"^    client_max_body_size (\d+)m;", text, re.MULTILINE)
    assert limit is not None
    assert int(limit[1]) * 1024**2 > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    (imports,) = re.findall(r"location = (/\S+) \{\s+client_max_body_size 0;", text)
    assert imports == reverse("import")


def test_the_proxy_lets_go_of_a_connection_first() -> None:
    """Else a command is sent into a connection that is being closed, and lost.

    Breaks when: ``Patience.idle`` falls below what nginx keeps an idle connection for.
    """
    text = site(["127.0.0.1:8001"], name="chat.example.org", listen="127.0.0.1:8000")
    kept = re.search(r"keepalive_timeout (\d+)s;", text)
    assert kept is not None
    assert int(kept[1]) < entrance.PATIENCE.idle
