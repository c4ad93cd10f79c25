"""WebSocket conversations: messages of `graphql-transport-ws` in any order, and frames that are not messages."""

import os
from dataclasses import dataclass
from typing import Any

from tests.attacks.fuzz.documents import Writer
from tests.attacks.fuzz.values import ODD_TEXTS, odd, written
from tests.attacks.world import World
from tests.executor.differential.tapes import Tape

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
IDS = ("1", "2", "3", "", "x" * 101, "\ud800", "é")
PLAIN = '{ user(by: {login: "alice"}) { login } }'


@dataclass(frozen=True)
class Conversation:
    """The frames of a client, and how it ends the conversation: by a closing handshake or a dropped connection."""

    frames: tuple[bytes, ...]
    drops: bool


def masked(opcode: int, payload: bytes = b"", *, final: bool = True, mask: bool = True, reserved: int = 0) -> bytes:
    """Return a frame, masked with zeros."""
    size = len(payload)
    bit = 0x80 if mask else 0
    if size < 126:
        length = bytes([bit | size])
    elif size < 65_536:
        length = bytes([bit | 126]) + size.to_bytes(2)
    else:
        length = bytes([bit | 127]) + size.to_bytes(8)
    return bytes([(0x80 if final else 0) | reserved | opcode]) + length + (bytes(4) if mask else b"") + payload


class Conversations:
    """Generates conversations with the server of a world."""

    def __init__(self, world: World) -> None:
        self._documents = Writer(world)
        self._tokens = tuple(world.tokens.values())

    def case(self, tape: Tape) -> Conversation:
        """Return a conversation."""
        frames = [self._init(tape)] if tape.chance(85) else []
        for _ in range(1 + tape.below(8)):
            frames += self._step(tape)
        return Conversation(tuple(frames), tape.chance(30))

    def _init(self, tape: Tape) -> bytes:
        payload: Any = {}
        if tape.chance(50):
            payload = {tape.pick(("authorization", "Authorization")): f"Bearer {tape.pick(self._tokens)}"}
        elif tape.chance(15):
            payload = tape.pick((None, [], "x", {"authorization": 1}, {"authorization": "Bearer x"}, odd(tape)))
        return message(type="connection_init", payload=payload)

    def _step(self, tape: Tape) -> list[bytes]:
        way = tape.below(100)
        if way < 55:
            return self._subscribed(tape)
        if way < 65:
            return [message(type="complete", id=tape.pick(IDS))]
        if way < 70:
            return [self._init(tape)]
        if way < 78:
            return [
                message(
                    type=tape.pick(("ping", "pong", "next", "error", "start", "", "connection_ack")),
                    payload=odd(tape),
                    id="1",
                )
            ]
        if way < 84:
            return [
                masked(
                    TEXT,
                    tape.pick(
                        (
                            b"",
                            b"{",
                            b"[]",
                            b"null",
                            b"1",
                            b"\xff",
                            b"[" * 30_000,
                            b'{"type": {}}',
                            b'{"type": "subscribe"}',
                        )
                    ),
                )
            ]
        if way < 88:
            return [masked(TEXT, written({"type": "subscribe", "id": odd(tape), "payload": odd(tape)}))]
        return odd_frames(tape)

    def _subscribed(self, tape: Tape) -> list[bytes]:
        document = self._documents.subscription(tape) if tape.chance(45) else self._documents.document(tape)
        payload = {"query": document.text, "variables": document.variables, "operationName": document.operation_name}
        if tape.chance(6):
            payload[tape.pick(("query", "variables", "operationName", "extensions"))] = odd(tape)
        content = written(
            {
                "type": "subscribe",
                "id": tape.pick(IDS) if tape.chance(50) else os.fsdecode(b"%d" % tape.below(256)),
                "payload": payload,
            }
        )
        if tape.chance(15):
            middle = tape.below(256) * len(content) // 256
            between = [masked(PING, b"between")] if tape.chance(50) else []
            return [masked(TEXT, content[:middle], final=False), *between, masked(CONTINUATION, content[middle:])]
        return [masked(TEXT, content)]


def odd_frames(tape: Tape) -> list[bytes]:
    """Return frames that are rare or not allowed."""
    return tape.pick(
        (
            [masked(PING, b"x" * tape.below(126))] * (1 + tape.below(20)),
            [masked(PONG, b"unasked")],
            [masked(BINARY, b"\0\1\2")],
            [masked(BINARY, written({"type": "ping"}))],
            [masked(TEXT, b"a", final=False), masked(TEXT, b"b")],
            [masked(CONTINUATION, b"a")],
            [masked(TEXT, b"", final=False)]
            + [masked(CONTINUATION, b" ", final=False)] * 50
            + [masked(CONTINUATION, b"{}")],
            [masked(PING, b"x" * 126)],
            [masked(PING, b"x", final=False)],
            [masked(0x3, b"reserved")],
            [masked(0xB, b"reserved")],
            [masked(TEXT, b"{}", reserved=0x40)],
            [masked(TEXT, b"{}", mask=False)],
            [masked(TEXT, b'{"type": "ping", "payload": "' + b"x" * 100_000 + b'"}')],
            [bytes([0x81, 0xFF]) + (2**62).to_bytes(8) + bytes(4)],
            [bytes([0x81, 0xFF]) + (2**63).to_bytes(8) + bytes(4)],
            [bytes([0x81, 0xFE, 0xFF, 0xFF]) + b"half"],
            [masked(CLOSE, (1000).to_bytes(2))],
            [masked(CLOSE, (tape.pick((0, 999, 1005, 1006, 4400, 65535))).to_bytes(2) + b"reason")],
            [masked(CLOSE, b"x")],
            [masked(CLOSE, (1000).to_bytes(2) + b"\xff")],
            [masked(TEXT, tape.pick(ODD_TEXTS).encode())],
            [b"GET / HTTP/1.1\r\n\r\n"],
        )
    )


def message(**fields: Any) -> bytes:
    """Return a message as a frame."""
    return masked(TEXT, written(fields))
