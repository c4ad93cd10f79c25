"""What anonymous clients can reach or learn: metrics, files, redirects, headers, handshakes."""

import pytest

from tests.attacks.clients import exchange, read_answer, request
from tests.attacks.victim import PLAIN, Victim

KEY = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
PROTOCOL = "Sec-WebSocket-Protocol: graphql-transport-ws"
UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", KEY, PROTOCOL)


def test_x19_metrics_are_not_public(victim: Victim) -> None:
    """X19: `/metrics` was public, although each request takes round trips to the store."""
    with victim.client() as client:
        assert client.get("/metrics").status_code in (401, 403, 404)


@pytest.mark.parametrize("path", ["/graphql/", "//graphql", "/graphql//", "/health/live/", "/health/ready/"])
def test_x19_no_redirect_to_a_host_of_the_client(victim: Victim, path: str) -> None:
    """X19: `/graphql/` redirected to the host in the `Host` header."""
    with victim.client() as client:
        for method in ("GET", "POST"):
            answer = client.request(method, path, headers={"host": "evil.example"})
            assert "evil.example" not in answer.headers.get("location", "")


@pytest.mark.parametrize("path", ["/graphql", "/health/live", "/nothing", "/graphql/"])
def test_x19_answers_are_not_sniffed(victim: Victim, path: str) -> None:
    """X19: no response had `X-Content-Type-Options: nosniff`."""
    with victim.client() as client:
        assert client.get(path).headers["x-content-type-options"] == "nosniff"
        assert client.post(path, json={"query": PLAIN}).headers["x-content-type-options"] == "nosniff"


HANDSHAKES = {
    "no key": [each for each in UPGRADE if each != KEY],
    "a short key": [*(each for each in UPGRADE if each != KEY), "Sec-WebSocket-Key: AAAA"],
    "two keys": [*UPGRADE, KEY],
    "an old version": [each.replace("13", "8") for each in UPGRADE],
    "no version": [each for each in UPGRADE if "Version" not in each],
    "no connection header": list(UPGRADE[1:]),
    "another protocol": [each.replace("graphql-transport-ws", "graphql-ws") for each in UPGRADE],
    "no protocol": list(UPGRADE[:-1]),
    "another upgrade": [each.replace("websocket", "h2c") for each in UPGRADE],
    "an upgrade twice": [*UPGRADE, "Upgrade: h2c"],
    "a body": [*UPGRADE, "Content-Length: 5"],
    "chunks": [*UPGRADE, "Transfer-Encoding: chunked"],
    "a foreign origin": [*UPGRADE, "Origin: https://evil.example"],
    "a null origin": [*UPGRADE, "Origin: null"],
    "a bad extension": [*UPGRADE, "Sec-WebSocket-Extensions: ;;;=,"],
}


@pytest.mark.parametrize("name", HANDSHAKES)
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["/graphql", "/nothing"])
def test_x19_malformed_handshakes_are_answered(victim: Victim, name: str, method: str, path: str) -> None:
    """X19: malformed WebSocket handshakes were never answered."""
    head = "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *HANDSHAKES[name], "", ""])
    with victim.connect() as connection:
        connection.settimeout(5)
        connection.sendall(head.encode())
        answer = connection.recv(4096)
    status = int(answer.split()[1]) if answer else 0
    assert status == 0 or 101 <= status < 500, answer
    assert status != 101 or (method, path) == ("GET", "/graphql")
    assert victim.answers()


def test_x19_a_request_after_a_refused_handshake(victim: Victim) -> None:
    """The connection of a refused handshake is either closed or usable for the next request."""
    head = "\r\n".join(["GET /graphql HTTP/1.1", "Host: localhost", *HANDSHAKES["an old version"], "", ""])
    with victim.connect() as connection:
        connection.settimeout(5)
        connection.sendall(head.encode())
        first = read_answer(connection)
        assert 400 <= first.status < 500
    assert exchange(victim, request({"query": PLAIN})) is not None
