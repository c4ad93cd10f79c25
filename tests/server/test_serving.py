"""Listening sockets and the options of connections."""

import socket
from contextlib import closing

import pytest

from server.serving import UNHEARD_SECONDS, Worker, bind, configure
from server.settings import SettingsError
from tests.server.conftest import Api
from tests.support.graph_worlds import PATIENCE


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="needs Linux, which gives up on silent peers")
def test_connections_to_lost_peers_time_out() -> None:
    """Each connection inherits the timeout for a peer that no longer acknowledges data."""
    with closing(bind("127.0.0.1", 0)) as listening, closing(socket.create_connection(listening.getsockname())):
        accepted, _ = listening.accept()
        with closing(accepted):
            waits = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert waits == UNHEARD_SECONDS * 1000


def test_a_port_in_use_is_said() -> None:
    """It is reported in one sentence."""
    with (
        closing(bind("127.0.0.1", 0)) as listening,
        pytest.raises(SettingsError, match=r"is in use\. Choose another"),
    ):
        bind("127.0.0.1", listening.getsockname()[1])


def test_a_supervisor_notices_that_a_worker_dies_before_it_answers() -> None:
    """Otherwise it would wait for the answer for a minute, during which it handles no signals."""
    worker = Worker(configure("server.serving:from_environment", factory=True, log_config=None), [])
    worker.start()
    worker.process.kill()
    try:
        assert worker.parent_conn.poll(PATIENCE)
        with pytest.raises(EOFError):
            worker.parent_conn.recv()
    finally:
        worker.join()
        worker.parent_conn.close()


async def test_messages_are_not_compressed(api: Api) -> None:
    """This holds even if the client offers it: each of thousands of idle sockets would pay for compression."""
    async with api.socket() as socket:
        assert socket.connection.protocol.extensions == []
