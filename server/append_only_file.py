"""Find damage at the end of the embedded store's append-only file, and cut it off.

Valkey itself removes an incomplete transaction at the end. If it finds anything else that it cannot read, it does not
start: the file has no checksums, so Valkey cannot know what is missing. Fanline can recover, because most state can be
derived from the log, and the archive holds the log. Fanline cuts the file before the first damaged transaction, which
leaves the store as it was at an earlier moment. Some commands after the damage are still readable. Fanline appends
those whose effects cannot be derived: writes of events, sessions, logins and idempotency keys. The worker projects
these events once more, as after any crash, and the archiver adds the events that only the archive still has.

Changed bytes inside a value cannot be detected if the structure of the file is intact.
"""

import mmap
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from graph import keys
from graph.log.log import ANY_REQUEST
from graph.log.numbers import entry_id

TAIL = 128 * 1024
"""Damage within this distance from the end of the file, in bytes, is cut off. The operator must repair other damage."""
JOURNAL = "cut"
COPY = re.compile(r"removed-(\d+)\.aof")
IDEMPOTENCY = b"{log}:idempotency:"
FRAME = re.compile(rb"\*(\d{1,9})\r\n")
WORD = re.compile(rb"\$(\d{1,10})\r\n")
START = re.compile(rb"\*\d{1,9}\r\n\$\d{1,2}\r\n[A-Za-z]")

Arities: TypeAlias = Mapping[bytes, int]
"""Maps the name of a command, in lower case, to its number of words including the name. −n means at least n."""
Source: TypeAlias = "mmap.mmap | bytes"


@dataclass(frozen=True, slots=True)
class Damage:
    """The first damage in a file.

    All transactions before `start` are complete. The transaction that begins there is damaged at or before `position`.
    `size` is the length of the file in bytes. If `is_zeros`, all bytes from `position` on are zeros.
    """

    file: Path
    start: int
    position: int
    size: int
    is_zeros: bool = False

    @property
    def can_be_cut(self) -> bool:
        """True if a cut keeps the archive binding, and the damage is near the end of the file or only zeros."""
        if self.size - self.position > TAIL and not self.is_zeros:
            return False
        is_first = self.file.name.endswith(".1.incr.aof")  # later files follow a base file that has everything before
        return not (is_first and self.start == 0) and keys.BINDING.encode() not in self.removed()

    def removed(self) -> bytes:
        """Return the bytes from the start of the damaged transaction to the end of the file."""
        with self.file.open("rb") as opened:
            opened.seek(self.start)
            return opened.read()


@dataclass(frozen=True, slots=True)
class RemovedTail:
    """The result of a cut: `removed` bytes were cut off, and `kept` of the commands in them were appended again.

    `copy` is a file with the removed bytes. If `empty`, the bytes were all zeros.
    """

    file: Path
    removed: int
    kept: int
    copy: Path
    empty: bool

    def __str__(self) -> str:
        if self.empty:
            return (
                f"{self.file} ended with {self.removed:,} zero bytes, which were removed. "
                "Everything before them is intact."
            )
        return (
            f"{self.file} was damaged at its end. Its last {self.removed:,} bytes were removed; {self.copy} is a copy. "
            f"{self.kept} of their commands hold events, sessions or logins, and were kept. The archiver adds the "
            "events that only the archive has. Anything else in the damaged bytes is lost."
        )


def last_file(folder: Path) -> Path | None:
    """Return the file to which Valkey appends, according to the manifest in `appendonlydir`; None if there is none."""
    manifest = folder / "appendonlydir" / "appendonly.aof.manifest"
    with suppress(OSError):
        names = re.findall(r"^file (\S+) seq \d+ type i", manifest.read_text(encoding="utf-8", errors="replace"), re.M)
        if names and "/" not in names[-1] and (file := manifest.with_name(names[-1])).is_file():
            return file
    return None


def find_damage(file: Path, arities: Arities) -> Damage | None:
    """Return the first damage in an append-only file, or None. Uses a memory map. O(n) in the size of the file."""
    size = file.stat().st_size
    if not size:
        return None
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as source:
        start = position = 0
        in_transaction = False
        while position < size:
            if source[position : position + 1] == b"#":  # an annotation, such as a time
                position = (source.find(b"\n", position) + 1) or size
                continue
            parsed = _command(source, position, arities)
            if parsed is None:
                return Damage(file, start, position, size, not source[position:].strip(b"\0"))
            words, position = parsed
            name = words[0].lower()
            if (name == b"multi") == in_transaction and name in (b"multi", b"exec"):
                return Damage(file, start, position, size)
            in_transaction = name == b"multi" or (in_transaction and name != b"exec")
            if not in_transaction:
                start = position
        return Damage(file, start, size, size) if in_transaction else None


def cut(folder: Path, damage: Damage, arities: Arities) -> RemovedTail:
    """Cut off the damaged end, and append its irreplaceable commands again. `resume` finishes an interrupted cut."""
    removed = damage.removed()
    kept = _irreplaceable(removed, arities)
    copies = [int(match[1]) for path in folder.iterdir() if (match := COPY.fullmatch(path.name))]
    copy = folder / f"removed-{max(copies, default=0) + 1}.aof"
    _write(copy, removed)
    _write(folder / f"{JOURNAL}.new", f"{damage.file.name} {damage.start}\n".encode() + b"".join(kept))
    os.replace(folder / f"{JOURNAL}.new", folder / JOURNAL)
    _sync(folder)
    resume(folder)
    return RemovedTail(damage.file, len(removed), len(kept), copy, not removed.strip(b"\0"))


def resume(folder: Path) -> None:
    """Finish a cut that a crash interrupted, if there is one."""
    journal = folder / JOURNAL
    try:
        head, _, kept = journal.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return
    name, start = head.decode().split()
    with (folder / "appendonlydir" / name).open("r+b") as opened:
        opened.truncate(int(start))
        opened.seek(int(start))
        opened.write(kept)
        opened.flush()
        os.fsync(opened.fileno())
    journal.unlink()
    _sync(folder)


def _irreplaceable(source: bytes, arities: Arities) -> list[bytes]:
    """Return the complete commands in damaged bytes that write events, sessions, logins or idempotency keys.

    An idempotency key whose events are damaged is left out: the request must be able to append them again.
    """
    found = list(_whole_commands(source, arities))
    entries = {words[2] for words, _ in found if words[0].lower() == b"xadd"}
    return [command for words, command in found if _has_events(words, entries)]


def _has_events(words: Sequence[bytes], entries: Collection[bytes]) -> bool:
    """Return False for a command that sets an idempotency key whose events are not all among these log entries."""
    if not words[1].startswith(IDEMPOTENCY) or words[0].lower() != b"set":
        return True
    digest, *numbers = words[2].decode("ascii", "replace").split() or [""]
    return digest == ANY_REQUEST or (
        bool(numbers) and all(each.isdecimal() and entry_id(int(each)).encode() in entries for each in numbers)
    )


def _whole_commands(source: bytes, arities: Arities) -> Iterator[tuple[list[bytes], bytes]]:
    """Yield the words and the bytes of each complete command whose effect cannot be restored from events.

    No value in the store contains a carriage return, so a user's text is never mistaken for a command.
    """
    position = 0
    while found := START.search(source, position):
        parsed = _command(source, found.start(), arities)
        if parsed is None:
            position = found.start() + 1
            continue
        words, position = parsed
        if _is_irreplaceable(words) and not any(b"\r" in word for word in words):
            yield words, source[found.start() : position]


def _is_irreplaceable(words: Sequence[bytes]) -> bool:
    """Return True if the data that a command writes cannot be restored from events."""
    if len(words) < 2:
        return False
    key = words[1].decode("utf-8", "replace")
    if key == keys.LOG:
        return words[0].lower() in (b"xadd", b"xdel", b"xsetid")
    return key == keys.DELETED or key.startswith(keys.IRREPLACEABLE)


def _command(source: Source, position: int, arities: Arities) -> tuple[list[bytes], int] | None:
    """Return the words of the command at a position, and the position after it; None if the command is incomplete."""
    frame = FRAME.match(source, position)
    if frame is None or not int(frame[1]):
        return None
    position = frame.end()
    words: list[bytes] = []
    for _ in range(int(frame[1])):
        word = WORD.match(source, position)
        if word is None:
            return None
        end = word.end() + int(word[1])
        if source[end : end + 2] != b"\r\n":
            return None
        words.append(source[word.end() : end])
        position = end + 2
    arity = arities.get(words[0].lower())
    if arity is None or (len(words) != arity if arity > 0 else len(words) < -arity):
        return None
    return words, position


def _sync(folder: Path) -> None:
    """Flush a folder's directory entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, and flush it to disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
