"""WebSocket frames: floods close the connection, and no memory grows."""

import asyncio
import json

from websockets.frames import Frame, Opcode

from server.settings import Settings
from server.transport.limits import CONTROL_BURST, MAX_FRAGMENTS, SOCKET_SLICE
from server.transport.websocket import SocketProtocol
from tests.server.conftest import Api, until
from tests.server.transport.conftest import Raw, refused

INIT = b'{"type":"connection_init"}'
PING = b'{"type":"ping"}'


def text(data: bytes, *, fin: bool = True) -> Frame:
    return Frame(Opcode.TEXT, data, fin)


def more(data: bytes, *, fin: bool = False) -> Frame:
    return Frame(Opcode.CONT, data, fin)


def protocol(api: Api) -> SocketProtocol:
    """Return the server's end of the only socket."""
    [found] = api.server.server_state.connections
    assert isinstance(found, SocketProtocol)
    return found


async def test_pings_are_answered(raw: Raw) -> None:
    await raw.upgrade()
    await raw.send_frames(*[Frame(Opcode.PING, b"%d" % number) for number in range(30)])
    for number in range(30):
        assert await raw.frame() == (Opcode.PONG, b"%d" % number)


async def test_a_flood_of_pings_closes_the_socket(api: Api, raw: Raw) -> None:
    """This holds whether or not the client reads."""
    await raw.upgrade()
    await raw.send_frames(*[Frame(Opcode.PING, b"x" * 125)] * 10_000)
    assert await raw.close_code() == 1008
    assert refused(api) == {"control_frames": 1}
    assert len(await raw.rest()) < CONTROL_BURST * 127


async def test_a_flood_of_pongs_closes_the_socket(api: Api, raw: Raw) -> None:
    await raw.upgrade()
    await raw.send_frames(*[Frame(Opcode.PONG, b"")] * 10_000)
    assert await raw.close_code() == 1008
    assert refused(api) == {"control_frames": 1}


async def test_a_message_may_have_fragments(raw: Raw) -> None:
    """Pings may come in between."""
    await raw.upgrade()
    await raw.send_frames(text(INIT[:5], fin=False), more(b""), Frame(Opcode.PING, b""), more(INIT[5:], fin=True))
    assert (await raw.frame())[0] is Opcode.PONG
    assert json.loads((await raw.frame())[1]) == {"type": "connection_ack"}


async def test_a_message_of_too_many_fragments_closes_the_socket(api: Api, raw: Raw) -> None:
    """This applies even if they are empty."""
    await raw.upgrade()
    await raw.send_frames(text(b"", fin=False), *[more(b"")] * 2 * MAX_FRAGMENTS)
    assert await raw.close_code() == 1008
    assert refused(api) == {"fragments": 1}


async def test_a_fragmented_message_has_the_same_limit(settings: Settings, raw: Raw) -> None:
    await raw.upgrade()
    await raw.send_frames(text(b" " * 1000, fin=False), *[more(b" " * 1000)] * (settings.max_body // 1000))
    assert await raw.close_code() == 1009


async def test_text_that_is_not_utf_8_closes_the_socket(api: Api, raw: Raw) -> None:
    """The code is 1007, and the log has no traceback."""
    await raw.upgrade()
    await raw.send_frames(text(b"\xff"))
    assert await raw.close_code() == 1007
    assert refused(api) == {"malformed": 1}


async def test_parsing_waits_for_the_application(api: Api, raw: Raw) -> None:
    """While the application is busy, few messages are parsed, and other tasks run between messages."""
    await raw.upgrade()
    await raw.send_frames(text(INIT))
    await raw.frame()
    most = 0
    sending = asyncio.create_task(raw.send_frames(*[text(PING)] * 20_000))
    pongs = 0
    while pongs < 20_000:
        opcode, data = await raw.frame()
        pongs += opcode is Opcode.TEXT and json.loads(data) == {"type": "pong"}
        most = max(most, len(protocol(api).queue._items))  # type: ignore[attr-defined]  # our MessageQueue
    await sending
    assert most <= SOCKET_SLICE // 6
    assert refused(api) == {}


async def test_a_closing_socket_reads_little(api: Api, raw: Raw) -> None:
    """A client that ignores the close frame and continues to send is aborted."""
    await raw.upgrade()
    await raw.send_frames(text(b"nonsense"))
    assert await raw.close_code() == 4400
    await raw.send(*[Frame(Opcode.BINARY, b"x" * 1000).serialize(mask=True)] * 1000)
    await raw.rest()
    await until(lambda: not api.server.server_state.connections)
