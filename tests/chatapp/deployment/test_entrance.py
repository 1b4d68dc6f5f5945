"""What the real server makes of requests that are too large, too slow, or not what they say."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.testing import StringTransport

from chatapp.deployment import entrance
from chatapp.deployment.many import proxy
from chatapp.transfer.openai_messages import MAX_BYTES
from tests.benchmarks._processes import sessions
from tests.ports import free_port
from tests.servers import RunningServer, manage, start_server, status_of
from tests.services import ensure_nginx

MEGABYTE = 1024**2
FORM = b"a=b&" * (MEGABYTE // 4)
TOKEN = "x" * 32
#: What the kernels of both sides hold, and what a refused sender may still send: far below the
#: 20 MB that froze everybody.
UNREAD = 16 * MEGABYTE
#: Seconds in which an impatient server must have ended what dripped. The limit is one.
SOON = 15.0


def _running(folder: Path, **env: Any) -> Iterator[RunningServer]:
    """A server that must have no traceback in its log at the end."""
    server = start_server(folder, **env)
    yield server
    server.terminate()
    assert "Traceback" not in server.log, server.log


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    yield from _running(tmp_path_factory.mktemp("entrance"))


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    yield from _running(
        tmp_path_factory.mktemp("impatient"), DJANGO_SETTINGS_MODULE="tests.impatient_settings"
    )


@pytest.fixture(scope="module")
def session(shared: RunningServer) -> str:
    """The session of somebody who is signed in."""
    return sessions(shared)[0]


@contextmanager
def connected(server: RunningServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=SOON) as made:
        yield made


def head(path: str, *lines: str, method: str = "POST", session: str = "") -> bytes:
    """The headers of a request, by whom the session belongs to."""
    cookies = f"csrftoken={TOKEN}" + (f"; sessionid={session}" if session else "")
    fixed = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Cookie: {cookies}"]
    if not any(line.startswith("Accept:") for line in lines):
        fixed.append("Accept: application/json")
    return "\r\n".join([*fixed, f"X-CSRFToken: {TOKEN}", *lines, "", ""]).encode()


class Answer:
    """What came back on a connection."""

    def __init__(self, made: socket.socket) -> None:
        received = bytearray()
        with suppress(ConnectionResetError):
            while not self._is_whole(bytes(received)) and (piece := made.recv(65536)):
                received += piece
        self.raw = bytes(received)
        first, _, rest = self.raw.partition(b"\r\n")
        self.status = int(first.split()[1]) if first else 0
        self.headers, _, self.body = rest.partition(b"\r\n\r\n")

    @staticmethod
    def _is_whole(received: bytes) -> bool:
        """Whether all that the headers promise has come; an end of the connection tells, too."""
        headers, _, body = received.partition(b"\r\n\r\n")
        for line in headers.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                return len(body) >= int(line.split(b":")[1])
        return False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])


def push(made: socket.socket, pieces: Callable[[], bytes], most: int) -> int:
    """Send until ``most`` bytes or until the other side has had enough; how many went."""
    sent = 0
    with suppress(ConnectionError):
        while sent < most:
            piece = pieces()
            made.sendall(piece)
            sent += len(piece)
    return sent


def plain() -> bytes:
    return FORM


def chunk() -> bytes:
    return b"%x\r\n%b\r\n" % (len(FORM), FORM)


def resident(server: RunningServer) -> int:
    """The most bytes in RAM that the process has had so far."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


FORM_TYPE = "Content-Type: application/x-www-form-urlencoded"
PARTS_TYPE = "Content-Type: multipart/form-data; boundary=b"
FILE_HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.json"\r\n\r\n'
FILE_END = b"\r\n--b--\r\n"


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("kind", [FORM_TYPE, PARTS_TYPE, "Content-Type: application/json"])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("path", ["/accounts/login/", "/c/", "/admin/login/", "/nowhere/"])
def test_n01_a_large_body_is_refused_before_it_is_read(
    shared: RunningServer, session: str, path: str, chunked: bool, kind: str, signed: bool
) -> None:
    """N01, I25, I26. Nothing of it is kept, and its sender does not even get rid of it.

    Breaks when: the whole body is awaited before the application is called, the application's
    answer before the body's end does not end the connection, or chunks are not counted.
    """
    before = resident(shared)
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {600 * MEGABYTE}"
    with connected(shared) as made:
        made.sendall(head(path, kind, length, session=session if signed else ""))
        sent = push(made, chunk if chunked else plain, 600 * MEGABYTE)
        answer = Answer(made)
    assert answer.status == 413
    assert answer.code == "request_too_large"
    assert b"Connection: close" in answer.headers
    # Those who are known are listened to for 8 MB, unless they said that it would be more.
    assert sent < UNREAD + (8 * MEGABYTE if signed else 0)
    assert resident(shared) - before < 24 * MEGABYTE


@pytest.mark.parametrize(
    ("accept", "shown"),
    [
        ("Accept: application/json", '"code": "request_too_large"'),
        ("Accept: text/html", "<h1>That did not work</h1>"),
        ("Accept: */*\r\nHX-Request: true", 'role="alert"'),
    ],
)
def test_a_refusal_is_answered_as_everything_else(
    shared: RunningServer, session: str, accept: str, shown: str
) -> None:
    """Breaks when: the refusal does not come from Django, with its headers and templates (I23)."""
    asked = accept.split("\r\n")
    for who in ("", session):
        with connected(shared) as made:
            made.sendall(head("/c/", f"Content-Length: {20 * MEGABYTE}", *asked, session=who))
            answer = Answer(made)
        assert answer.status == 413
        assert shown in answer.body.decode()
        assert b"at most 8 MB" in answer.body
        for name in (b"Content-Security-Policy:", b"no-store", b"nosniff"):
            assert name in answer.headers


def test_who_is_not_known_may_send_a_form_to_sign_in_and_not_much_more(
    shared: RunningServer, session: str
) -> None:
    """Breaks when: ANYBODY_MAX is as high as what people who are signed in may send."""
    body = b"title=A&other=" + b"%41" * 300_000
    lines = (FORM_TYPE, f"Content-Length: {len(body)}")
    said = []
    for who in ("", "no-such-session-no-such-session0", session):
        with connected(shared) as made:
            made.sendall(head("/c/", *lines, session=who))
            push(made, lambda: body, 1)
            said.append(Answer(made))
    assert [one.status for one in said] == [413, 413, 201]
    assert "signed out" in said[0].json["error"]["message"]


def upload(server: RunningServer, session: str, size: int) -> Answer:
    """Import a list of two messages, in a file of ``size`` bytes."""
    text = b'[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]'
    body = FILE_HEAD + text + b" " * (size - len(text)) + FILE_END
    with connected(server) as made:
        length = f"Content-Length: {len(body)}"
        made.sendall(head("/import/", PARTS_TYPE, length, session=session))
        push(made, lambda: body, 1)
        return Answer(made)


def test_an_import_has_a_limit_of_its_own_for_who_is_signed_in(
    shared: RunningServer, session: str
) -> None:
    """Breaks when: 8 MB are the limit of every route, or anybody may send an import."""
    assert upload(shared, session, 12 * MEGABYTE).status in {200, 201, 202}
    assert upload(shared, "", 12 * MEGABYTE).code == "request_too_large"
    for who, refused in ((session, False), ("", True)):
        with connected(shared) as made:
            made.sendall(head("/import/", PARTS_TYPE, "Transfer-Encoding: chunked", session=who))
            push(made, chunk, 12 * MEGABYTE)
            with suppress(ConnectionError):
                made.sendall(b"0\r\n\r\n")
            assert (Answer(made).status == 413) is refused


def chunked(body: bytes, size: int = 65_000) -> bytes:
    """A body as one that says nothing of its length."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in [*pieces, b""])


@pytest.mark.parametrize("size", [200, 4 * MEGABYTE])
def test_a_form_in_chunks_is_a_form(shared: RunningServer, session: str, size: int) -> None:
    """As curl and many libraries send a file of which they do not know the length.

    Breaks when: the application makes its requests as Django does, without a length.
    """
    text = b'[{"role": "user", "content": "In %d chunks"}]' % size
    body = FILE_HEAD + text + b" " * (size - len(text)) + FILE_END
    with connected(shared) as made:
        made.sendall(head("/import/", PARTS_TYPE, "Transfer-Encoding: chunked", session=session))
        made.sendall(chunked(body))
        answer = Answer(made)
    assert (answer.status, answer.json["imported"], answer.json["size"]) == (201, 1, size)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (FORM_TYPE, b"a=b&" * 5_000),
        (FORM_TYPE, b"a=" + b"x" * (8 * MEGABYTE)),
        (PARTS_TYPE, b"not what the header says"),
        ("Content-Type: multipart/form-data", b"without a boundary"),
        (PARTS_TYPE, b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n' * 2_000),
    ],
)
def test_an_ordinary_refusal_leaves_no_traceback(
    shared: RunningServer, session: str, kind: str, body: bytes
) -> None:
    """Anybody can send this, and nobody has anything to mend.

    Breaks when: the console's handler has no ``RefusalFilter``, or that knows less than Django
    raises. ``_running`` looks into the log too.
    """
    for who in ("", session):
        with connected(shared) as made:
            length = f"Content-Length: {len(body)}"
            made.sendall(head("/import/", kind, length, session=who))
            push(made, lambda: body, 1)
            assert 400 <= Answer(made).status < 500
    assert "Traceback" not in shared.log


def test_an_import_that_is_too_large_is_refused_by_its_length(
    shared: RunningServer, session: str
) -> None:
    """Breaks when: the import's route has no limit."""
    with connected(shared) as made:
        said = f"Content-Length: {MAX_BYTES + 2 * MEGABYTE}"
        made.sendall(head("/import/", PARTS_TYPE, said, session=session))
        answer = Answer(made)
    assert answer.code == "request_too_large"
    assert f"larger than {MAX_BYTES // MEGABYTE} MB" in answer.json["error"]["message"]


def test_behind_a_proxy_it_is_the_same(shared: RunningServer, session: str, tmp_path: Path) -> None:
    """The site for nginx hands an import on as it comes, and keeps what is refused here small.

    Breaks when: nginx keeps the whole of an import before anybody asks who sends it, or answers
    what is too large by a page of its own.
    """
    ensure_nginx()
    port = free_port()
    with proxy(f"127.0.0.1:{port}", [shared.port]):
        behind = replace(shared, base_url=f"http://127.0.0.1:{port}")
        while True:
            with suppress(ConnectionRefusedError), connected(behind):
                break
        assert upload(behind, session, 12 * MEGABYTE).status in {200, 201, 202}
        refused = upload(behind, "", 60 * MEGABYTE)
        assert refused.code == "request_too_large"
        assert "signed out" in refused.json["error"]["message"]
        with connected(behind) as made:
            length = f"Content-Length: {MAX_BYTES + 2 * MEGABYTE}"
            made.sendall(head("/import/", PARTS_TYPE, length, session=session))
            push(made, plain, 200 * MEGABYTE)
            assert Answer(made).code == "request_too_large"


def test_others_are_answered_while_a_large_body_is_half_there(
    shared: RunningServer, session: str
) -> None:
    """And it is answered in its turn: nobody waits for whom the network makes wait."""
    body = b"title=A&other=" + b"x" * (6 * MEGABYTE)
    with connected(shared) as made:
        made.sendall(
            head("/c/", FORM_TYPE, f"Content-Length: {len(body)}", session=session)
            + body[: 4 * MEGABYTE]
        )
        assert status_of(f"{shared.base_url}/healthz") == 200
        made.sendall(body[4 * MEGABYTE :])
        assert Answer(made).status == 201


def test_a_body_is_asked_for_only_when_it_is_wanted(shared: RunningServer, session: str) -> None:
    """Expect: 100-continue (RFC 9110, section 10.1.1).

    Breaks when: the invitation is sent before the application asks for the body.
    """
    asked = "Expect: 100-continue"
    with connected(shared) as made:
        length = f"Content-Length: {20 * MEGABYTE}"
        made.sendall(head("/c/", asked, length, session=session))
        assert Answer(made).status == 413
    with connected(shared) as made:
        made.sendall(head("/c/", asked, FORM_TYPE, "Content-Length: 7", session=session))
        assert made.recv(65536).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        made.sendall(b"title=A")
        assert Answer(made).status == 201


def test_requests_follow_each_other_on_one_connection(shared: RunningServer, session: str) -> None:
    """Breaks when: a request whose body was read ends the connection, or the next is lost."""
    one = head("/c/", FORM_TYPE, "Content-Length: 7", session=session) + b"title=A"
    chunks = head("/c/", FORM_TYPE, "Transfer-Encoding: chunked", session=session)
    two = chunks + b"3\r\ntit\r\n4\r\nle=B\r\n0\r\n\r\n"
    with connected(shared) as made:
        for request in (one, two, one):
            made.sendall(request)
            answer = Answer(made)
            assert answer.status == 201
            assert b"Connection: close" not in answer.headers
        # All at once, the last of them in two parts.
        made.sendall(one + two + one[:-3])
        received = made.recv(65536)
        made.sendall(one[-3:])
        while received.count(b"HTTP/1.1 201") < 3:
            received += made.recv(65536)


def test_a_body_longer_than_it_says_is_the_next_request(
    shared: RunningServer, session: str
) -> None:
    with connected(shared) as made:
        made.sendall(
            head("/c/", FORM_TYPE, "Content-Length: 7", session=session) + b"title=A&other=more"
        )
        assert Answer(made).status == 201
        # It is no request, and an end of line never comes: the deadline of headers is another's.
        made.sendall(b"\r\n\r\n")
        assert Answer(made).status in {0, 400}


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 4", "Transfer-Encoding: chunked"),
        ("Content-Length: 4", "Content-Length: 5"),
        ("Content-Length: -4",),
        ("Content-Length: 4, 4",),
        ("Transfer-Encoding: gzip",),
        tuple(f"X-{number}: a" for number in range(600)),
        ("X-Long: " + "a" * 20_000,),
    ],
    ids=["both", "two", "negative", "list", "gzip", "600 headers", "20 kB of one"],
)
def test_i24_headers_that_do_not_add_up_end_the_connection(
    shared: RunningServer, lines: tuple[str, ...]
) -> None:
    with connected(shared) as made:
        with suppress(ConnectionError):
            made.sendall(head("/accounts/login/", *lines) + b"abcd")
        assert Answer(made).status in {0, 400}
    with connected(shared) as made:
        with suppress(ConnectionError):
            made.sendall(b"GET /?" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n")
        assert Answer(made).status in {0, 400}
    assert status_of(f"{shared.base_url}/healthz") == 200


def test_a_websocket_begins_with_no_body(shared: RunningServer, session: str) -> None:
    """The wish for it is not heard: what would be put back into the new protocol is not kept."""
    lines = ("Upgrade: websocket", "Connection: Upgrade", "Content-Length: 4")
    with connected(shared) as made:
        made.sendall(head("/ws/c/x/", *lines, session=session) + b"abcd")
        assert Answer(made).status == 404


def ended_after(made: socket.socket) -> float:
    """Seconds until the server ends a connection on which it says nothing."""
    begun = time.monotonic()
    with suppress(ConnectionResetError):
        assert made.recv(1) == b""
    return time.monotonic() - begun


DRIPPED = {
    "nothing": b"",
    "half a request line": b"POST /c/ HT",
    "half the headers": b"POST /c/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-",
    "no body": head("/c/", FORM_TYPE, "Content-Length: 100"),
    "less than it said": head("/c/", FORM_TYPE, "Content-Length: 100") + b"title=A",
    "half a chunk": head("/c/", FORM_TYPE, "Transfer-Encoding: chunked") + b"ff\r\ntitle=A",
}


@pytest.mark.parametrize("name", DRIPPED)
def test_n05_what_never_ends_is_ended(impatient: RunningServer, name: str) -> None:
    """N05. A byte now and then prolongs nothing.

    Breaks when: a deadline begins anew with each byte, as Twisted's own does.
    """
    with connected(impatient) as made:
        made.sendall(DRIPPED[name])
        made.settimeout(0.05)
        begun = time.monotonic()
        while time.monotonic() - begun < SOON:
            try:
                if made.recv(1) == b"":
                    break
            except TimeoutError:
                with suppress(ConnectionError):
                    made.sendall(b"1" if name != "nothing" else b"")
            except ConnectionResetError:
                break
        else:
            pytest.fail("The connection lives on.")


def test_n05_two_hundred_of_them_end_too(impatient: RunningServer) -> None:
    """Breaks when: connections are not ended at their deadlines."""
    made = []
    try:
        for number in range(200):
            one = socket.create_connection(("127.0.0.1", impatient.port), timeout=SOON)
            made.append(one)
            one.sendall(list(DRIPPED.values())[number % len(DRIPPED)])
        assert status_of(f"{impatient.base_url}/healthz") == 200
        for one in made:
            with suppress(ConnectionResetError):
                assert one.recv(1) == b""
    finally:
        for one in made:
            one.close()


def test_n05_an_idle_connection_ends(impatient: RunningServer) -> None:
    with connected(impatient) as made:
        for _ in range(2):
            made.sendall(head("/accounts/login/", method="GET"))
            assert Answer(made).status == 200
        assert ended_after(made) < SOON


def test_a_slow_honest_body_gets_through(impatient: RunningServer) -> None:
    """Longer than several windows, each with what it must bring.

    Breaks when: the deadline of a body is one for all of it.
    """
    session = sessions(impatient)[0]
    body = b"title=A&other=" + b"x" * 6000
    begun = time.monotonic()
    with connected(impatient) as made:
        made.sendall(head("/c/", FORM_TYPE, f"Content-Length: {len(body)}", session=session))
        for start in range(0, len(body), 400):
            made.sendall(body[start : start + 400])
            # The sender's own pace, 4,000 bytes a second: the least is 1,000.
            time.sleep(0.1)
        assert Answer(made).status == 201
    assert time.monotonic() - begun > 2 * 0.5


LARGE_CONVERSATION = """
from django.contrib.auth.models import User
from django.utils import timezone
from chatapp.models import Conversation, Message
owner = User.objects.get(username="viewer-0")
row = Conversation.objects.create(owner=owner, next_seq=2001)
now = timezone.now()
Message.objects.bulk_create(
    Message(conversation=row, seq=seq, role="user", text="x" * 16_000, created_at=now)
    for seq in range(1, 2001)
)
print(row.code)
"""


def test_i26_an_answer_waits_for_who_reads_it(shared: RunningServer, session: str) -> None:
    """I26: an export of 32 MB to somebody who does not read takes no memory, and goes on later.

    Breaks when: what an application sends is taken whether or not the network takes it.
    """
    code = manage(shared, "shell", "--no-imports", "-c", LARGE_CONVERSATION).strip()
    asked = head(f"/c/{code}/export/?format=json", "Connection: close", method="GET")
    asked = asked.replace(b"csrftoken", b"sessionid=" + session.encode() + b"; csrftoken")
    sizes = []
    for is_deleted in (False, True):
        before = resident(shared)
        with connected(shared) as made:
            made.sendall(asked)
            first = made.recv(1024)
            assert first.startswith(b"HTTP/1.1 200")
            # Time enough to read all of it from the database.
            for _ in range(100):
                assert status_of(f"{shared.base_url}/healthz") == 200
            assert resident(shared) - before < 20 * MEGABYTE
            if is_deleted:
                with connected(shared) as other:
                    path = f"/c/{code}/delete/"
                    other.sendall(head(path, "Content-Length: 0", session=session))
                    assert Answer(other).status == 200
            size = len(first)
            while piece := made.recv(1 << 20):
                size += len(piece)
            sizes.append(size)
    # What was not read from the database before the deletion is not in it.
    assert sizes[0] > 32_000_000 > 16_000_000 > sizes[1]


async def test_i26_who_is_gone_is_not_waited_for() -> None:
    """Breaks when: an application that waits for the network is not told of its end."""
    server = entrance.StreamingServer(nobody, endpoints=["tcp:0"])
    server.connections = {}
    channel = entrance.Factory(server).buildProtocol(None)
    assert channel is not None
    transport: Any = StringTransport
    channel.makeConnection(transport())
    request = entrance.Request(channel)
    channel.requests.append(request)
    channel.pauseProducing()
    waiting = asyncio.create_task(request.until_writable())
    await asyncio.sleep(0)
    assert not waiting.done()
    channel.connectionLost()
    await asyncio.wait_for(waiting, SOON)


class Network:
    """A transport that remembers whether it is paused."""

    def __init__(self) -> None:
        self.paused = False

    def pauseProducing(self) -> None:
        self.paused = True

    def resumeProducing(self) -> None:
        self.paused = False


async def nobody() -> None:
    raise AssertionError("Daphne was asked before the body's end.")


async def test_i26_the_network_waits_for_the_application() -> None:
    """Breaks when: ``Body.add`` does not pause, or what was paused is never resumed."""
    network = Network()
    invited: list[bool] = []
    body = entrance.Body(network, lambda: invited.append(True))
    body.add(b"x" * (entrance.BUFFER_MAX - 1))
    assert not network.paused
    body.add(b"yz")
    assert network.paused
    # It is not the peer who is slow; from the resumption on it is.
    assert body.kept_up(10**9)
    told = await body.receive(nobody)
    assert (len(told["body"]), told["more_body"]) == (entrance.BUFFER_MAX + 1, True)
    assert not network.paused
    assert body.kept_up(10**9)
    assert not body.kept_up(1)
    body.add(b"!")
    assert body.kept_up(1)
    body.end()
    assert (await body.receive(nobody))["more_body"] is False

    async def daphne() -> dict[str, str]:
        return {"type": "http.disconnect"}

    assert (await body.receive(daphne))["type"] == "http.disconnect"
    assert invited
