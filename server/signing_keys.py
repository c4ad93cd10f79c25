"""The keys that sign access tokens: their ids, and checks for weak keys."""

import hashlib
import os
import secrets
from pathlib import Path

MIN_BYTES = 32
MIN_DIFFERENT = 8
MIN_TRIPLETS = 24


def key_id(key: str) -> str:
    """Return the public id of a key, the `kid` of its tokens: eight hexadecimal digits that do not reveal the key."""
    return hashlib.sha256(b"fanline token key id\0" + key.encode()).hexdigest()[:8]


def weakness(key: str) -> str | None:
    """Return the reason why a key is too weak, or None for a strong key.

    A strong key has at least 32 bytes, 8 different bytes, and 24 different sequences of three bytes. A random key of 32
    hexadecimal digits fails this check less than once in a billion times. The check finds placeholders and repeated
    text, but not every guessable phrase.
    """
    data = key.encode()
    if len(data) < MIN_BYTES:
        return f"must have at least {MIN_BYTES} bytes"
    if len(set(data)) < MIN_DIFFERENT:
        return f"must have at least {MIN_DIFFERENT} different bytes"
    if len({data[at : at + 3] for at in range(len(data) - 2)}) < MIN_TRIPLETS:
        return "must not repeat itself"
    return None


def make_key_file(path: Path) -> None:
    """Create a file with a new key, unless another process has just created it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"secret.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()
