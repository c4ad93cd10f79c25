"""How the server listens, and what it agrees on with those who connect."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from server.process.serving import UNHEARD_SECONDS, bind, serve_many
from server.settings import Settings, SettingsError
from tests.server.conftest import Api


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux, which gives up on silent peers")
def test_connections_to_peers_that_are_gone_are_given_up() -> None:
    """Each connection inherits how long it waits for a peer that takes nothing more."""
    with closing(bind("127.0.0.1", 0)) as listening, closing(socket.create_connection(listening.getsockname())):
        accepted, _ = listening.accept()
        with closing(accepted):
            waits = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert waits == UNHEARD_SECONDS * 1000


def test_a_port_in_use_is_said() -> None:
    """In one sentence."""
    with (
        closing(bind("127.0.0.1", 0)) as listening,
        pytest.raises(SettingsError, match="is in use: choose another"),
    ):
        bind("127.0.0.1", listening.getsockname()[1])


def test_several_processes_are_not_started_in_vain(tmp_path: Path) -> None:
    """A wrong list of trusted documents is reported before, instead of by each of them again and again."""
    (tmp_path / "a.json").write_text('{"one": "{ nobody }"}')
    settings = Settings(data_dir=tmp_path, trusted_documents=tmp_path / "a.json")
    with (
        closing(bind("127.0.0.1", 0)) as listening,
        pytest.raises(SettingsError, match=r"a\.json, document 'one': Cannot query field 'nobody'"),
    ):
        serve_many(settings, listening, 2)


async def test_messages_are_not_compressed(api: Api) -> None:
    """Even if the client offers it: thousands of idle sockets would each pay for it."""
    async with api.socket() as socket:
        assert socket.connection.protocol.extensions == []
