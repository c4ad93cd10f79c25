"""The recording of an operation: its costs in the graph, the executor's layers, and the batches of its dataloaders."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from executor.loader import Asked, DataLoader
from graph.recording import RECORDING, Recording

if TYPE_CHECKING:
    import asyncio

K = TypeVar("K")
V = TypeVar("V")

Load = Callable[[list[K]], Awaitable[Sequence[V | Exception]]]


@dataclass(slots=True)
class LoaderRecord:
    """The record of a dataloader: the number of keys in each batch, and the number of requested keys."""

    name: str
    batches: list[int] = field(default_factory=list)
    requested: int = 0

    @property
    def hits(self) -> int:
        """The number of requested keys that were already cached or in a batch."""
        return self.requested - sum(self.batches)


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """A layer of the executor: its awaited fields, and when it began and ended."""

    fields: Sequence[str]
    started: float
    ended: float


class OperationRecording(Recording):
    """The costs of one operation. It is the observer of the executor (`executor.observer`).

    `plan` is True once the breadth-first executor runs the operation's plan; `fallback` is the reason if graphql-core
    executes the operation instead. `traced` is True if the operation's spans are sent.
    """

    def __init__(self, *, traced: bool = False) -> None:
        super().__init__()
        self.traced = traced
        self.plan = False
        self.fallback: str | None = None
        self.layers: list[LayerRecord] = []
        self.loaders: list[LoaderRecord] = []
        self._layer_started = self.started

    def plan_started(self) -> None:
        """Record that the breadth-first executor runs the operation's plan."""
        self.plan = True
        self._layer_started = time.perf_counter()

    def layer_ended(self, fields: Sequence[str]) -> None:
        """Add a layer. The first layer begins with the plan, every other layer at the end of the previous one."""
        now = time.perf_counter()
        self.layers.append(LayerRecord(fields, self._layer_started, now))
        self._layer_started = now

    def fell_back(self, reason: str) -> None:
        """Record that graphql-core executes the operation, and why."""
        self.fallback = reason

    def loader(self, name: str) -> LoaderRecord:
        """Return the record of a new dataloader."""
        record = LoaderRecord(name)
        self.loaders.append(record)
        return record


class RecordedLoader(DataLoader[K, V], Generic[K, V]):
    """A dataloader that records its batches and the keys requested from it."""

    def __init__(self, record: LoaderRecord, load: Load[K, V], loop: "asyncio.AbstractEventLoop") -> None:
        self._record = record
        self._load = load
        super().__init__(self._load_recorded, loop=loop)

    def _load_recorded(self, keys: list[K]) -> Awaitable[Sequence[V | Exception]]:
        self._record.batches.append(len(keys))
        return self._load(keys)

    def load(self, key: K) -> "asyncio.Future[V]":
        """Return a future for the value of a key, and count the key."""
        self._record.requested += 1
        return super().load(key)

    def ask(self, key: K) -> Asked:
        """Request the value of one key immediately, and count the key."""
        self._record.requested += 1
        return super().ask(key)

    def ask_many(self, keys: list[K]) -> Asked:
        """Request the values of several keys immediately, and count the keys."""
        self._record.requested += len(keys)
        return super().ask_many(keys)


def current_recording() -> OperationRecording | None:
    """Return the recording of the running operation, or None if it is not recorded."""
    recording = RECORDING.get()
    return recording if isinstance(recording, OperationRecording) else None


def make_loader(name: str, load: Load[K, V], loop: "asyncio.AbstractEventLoop") -> DataLoader[K, V]:
    """Return a dataloader. If the operation is recorded, so are the loader's batches."""
    recording = current_recording()
    return DataLoader(load, loop=loop) if recording is None else RecordedLoader(recording.loader(name), load, loop)
