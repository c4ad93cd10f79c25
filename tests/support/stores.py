"""Stores that stop, crash or fail at a given step."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from graph.errors import StoreUnavailable
from graph.store.commands import Command, keys_of, script
from graph.store.near_cache import MISSING
from graph.store.reads import Convert, Read
from graph.store.store import Store

Hook = Callable[[Sequence[Command]], Awaitable[None]]
Wanted = Callable[[Command], bool]


def cache_near(entries: int) -> None:
    """Use a near cache in stores of this process and in servers that it starts, unless a test sets its size."""
    opened: Any = Store.__init__
    opened.__kwdefaults__["near_cache"] = entries
    os.environ["FANLINE_NEAR_CACHE"] = str(entries)


class Crashed(Exception):
    """The process is killed at this point."""


class Killed(BaseException):
    """The process is killed at this point. No handler of the process catches it, because it is a BaseException."""


class InterceptedStore(Store):
    """A store whose reads are sent like writes, so that tests can intercept both in `_exchange`."""

    def __init__(self, url: str, *, single_slot: bool = False) -> None:
        super().__init__(url, single_slot=single_slot)
        self._reads: list[tuple[Sequence[Command], Convert, asyncio.Future[Any]]] = []

    def ask(self, commands: Sequence[Command], convert: Convert, kind: type[Read] = Read) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if not commands:  # like a store, send nothing
            Read((), convert, future).resolve([])
            return future
        if not self._reads:
            loop.call_soon(lambda: self._start(self._answer()))
        self._reads.append((list(commands), convert, future))
        return future

    def ask_each(
        self, name: str, keys: Sequence[str], words: tuple[str, ...], convert: Convert
    ) -> "asyncio.Future[Any]":
        return self.ask([(name, key, *words) for key in keys], convert)

    def track(
        self, name: str, keys: Sequence[str], words: tuple[str, ...], convert: Convert, known: list[Any]
    ) -> "asyncio.Future[list[Any]]":
        def fill(replies: list[Any]) -> list[Any]:
            values = iter(convert(replies))
            return [next(values) if value is MISSING else value for value in known]

        return self.ask([(name, key, *words) for key in keys], fill)

    async def _exchange_reads(self, commands: Sequence[Command]) -> list[Any]:
        return await self._exchange(commands)

    async def _answer(self) -> None:
        reads, self._reads = self._reads, []
        try:
            replies = await self._exchange_reads([command for commands, _, _ in reads for command in commands])
        except BaseException as failure:
            for _, convert, future in reads:
                if isinstance(failure, asyncio.CancelledError):
                    future.cancel()
                elif isinstance(failure, Exception):
                    Read((), convert, future).fail(failure)
                elif not future.done():
                    future.set_exception(failure)
            if not isinstance(failure, Exception):
                raise
            return
        for commands, convert, future in reads:
            own, replies = replies[: len(commands)], replies[len(commands) :]
            error = next((reply for reply in own if isinstance(reply, Exception)), None)
            read = Read((), convert, future)
            if error is None:
                read.resolve(own)
            else:
                read.reject(own, error)


class HookedStore(InterceptedStore):
    """A store with hooks before and after its exchanges. Its readers share the hooks."""

    def __init__(self, url: str, *, single_slot: bool = False) -> None:
        super().__init__(url, single_slot=single_slot)
        self.before: list[Hook] = []
        self.after: list[Hook] = []

    def ask(self, commands: Sequence[Command], convert: Convert, kind: type[Read] = Read) -> "asyncio.Future[Any]":
        if self.before or self.after:
            return super().ask(commands, convert, kind)
        return Store.ask(self, commands, convert, kind)

    def track(
        self, name: str, keys: Sequence[str], words: tuple[str, ...], convert: Convert, known: list[Any]
    ) -> "asyncio.Future[list[Any]]":
        if self.before or self.after:
            return super().track(name, keys, words, convert, known)
        return Store.track(self, name, keys, words, convert, known)

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        for hook in list(self.before):
            await hook(commands)
        replies = await super()._exchange(commands)
        for hook in list(self.after):
            await hook(commands)
        return replies

    def reader(self) -> "HookedStore":
        """Return another client with the same hooks."""
        reader = super().reader()
        reader.before, reader.after = self.before, self.after
        return reader


class Stop:
    """Stops the first exchange with a matching command until the test resumes it."""

    def __init__(self, store: Store, wanted: Wanted, *, after: bool = False) -> None:
        assert isinstance(store, HookedStore)
        self.reached = asyncio.Event()
        self.command: Command = ()
        self._resumed = asyncio.Event()
        self._wanted = wanted
        (store.after if after else store.before).append(self._hook)

    async def _hook(self, commands: Sequence[Command]) -> None:
        found = next(filter(self._wanted, commands), None)
        if found is not None and not self.reached.is_set():
            self.command = found
            self.reached.set()
            await self._resumed.wait()

    def resume(self) -> None:
        self._resumed.set()


class Fault:
    """Makes `times` exchanges with a matching command fail, before they are sent or after they were applied."""

    def __init__(
        self, store: Store, wanted: Wanted, error: BaseException | None = None, *, after: bool = False, times: int = 1
    ) -> None:
        assert isinstance(store, HookedStore)
        self.left = times
        self.done = asyncio.Event()
        self._error = error or StoreUnavailable("a fault injected by the test")
        self._wanted = wanted
        (store.after if after else store.before).append(self._hook)

    async def _hook(self, commands: Sequence[Command]) -> None:
        if self.left and any(map(self._wanted, commands)):
            self.left -= 1
            if not self.left:
                self.done.set()
            raise self._error


class LostShard:
    """Makes some keys unreachable until `heal`: commands on other keys are applied, and then the exchange fails.

    The failure takes `seconds`. `refused` counts the commands that were not applied.
    """

    def __init__(self, store: Store, lost: Callable[[str], bool], *, seconds: float = 0.0) -> None:
        assert isinstance(store, HookedStore)
        self.refused = 0
        self._lost = lost
        self._seconds = seconds
        self._store = store
        self._healed = asyncio.Event()
        store.before.append(self._hook)

    async def _hook(self, commands: Sequence[Command]) -> None:
        refused = [command for command in commands if any(map(self._lost, keys_of(command)))]
        if not refused or self._healed.is_set():
            return
        self.refused += len(refused)
        if reachable := [command for command in commands if command not in refused]:
            await Store._exchange(self._store, reachable)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._healed.wait(), self._seconds)
        raise StoreUnavailable("a shard lost by the test")

    def heal(self) -> None:
        self._healed.set()


class Death:
    """Kills the process at its n-th exchange, before it is sent or after it was applied."""

    def __init__(self, store: Store, exchange: int, *, after: bool) -> None:
        assert isinstance(store, HookedStore)
        self.exchange = exchange
        self.happened = False
        self._seen = 0
        store.before.append(self._count)
        store.after.append(self._after)
        self._late = after

    async def _count(self, _: Sequence[Command]) -> None:
        if self.happened or (self._seen == self.exchange and not self._late):
            self.happened = True
            raise Crashed
        self._seen += 1

    async def _after(self, _: Sequence[Command]) -> None:
        if self._late and self._seen == self.exchange + 1:
            self.happened = True
            raise Crashed


def runs(name: str, *words: object) -> Wanted:
    """Return a filter for calls of a script with all of these words, as arguments or as strings in a JSON argument."""

    def wanted(command: Command) -> bool:
        texts = [word.decode() if isinstance(word, bytes) else str(word) for word in command]
        return command[:2] == ("EVALSHA", script(name).sha) and all(
            any(str(word) == text or f'"{word}"' in text for text in texts) for word in words
        )

    return wanted


def of_users(*users: int) -> Callable[[str], bool]:
    """Return a filter for the keys of these users."""
    tags = tuple(f"{{{user}}}" for user in users)
    return lambda key: key.endswith(tags) or key.endswith(tuple(f"{tag}:gone" for tag in tags))


def sends(*words: object) -> Wanted:
    """Return a filter for commands that begin with these words."""
    return lambda command: tuple(map(str, command[: len(words)])) == tuple(map(str, words))
