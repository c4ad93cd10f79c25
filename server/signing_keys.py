"""The keys that sign access tokens: their ids, and which of them are too weak to use."""

import hashlib
import os
import secrets
from pathlib import Path

MIN_BYTES = 32
MIN_DIFFERENT = 8
MIN_TRIPLETS = 24


def key_id(key: str) -> str:
    """Return the public name of a key, which tokens carry as `kid`: eight hexadecimal digits that do not reveal it."""
    return hashlib.sha256(b"fanline token key id\0" + key.encode()).hexdigest()[:8]


def weakness(key: str) -> str | None:
    """Say what makes a key too weak, or return None.

    A strong key has at least 32 bytes, of them 8 different ones, and at least 24 different sequences of three bytes: a
    random key of 32 hexadecimal digits has fewer less than once in a billion times. That finds placeholders and
    repeated texts, not every phrase that can be guessed.
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
    """Write a new key under another name, then link it into place, unless another process was first."""
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
