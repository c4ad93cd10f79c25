"""The errors that commands expect, and the messages that explain them."""

from graph.archive.migrations import SchemaMismatch
from graph.archive.rows import ConflictingEvent
from graph.errors import (
    ArchiverStopped,
    ArchiveUnavailable,
    OutdatedWorker,
    Overloaded,
    RebuildRefused,
    StoreNotReady,
    StoreReplaced,
    StoreUnavailable,
    WrongArchive,
)
from server.cli.messages import say_labelled
from server.embedded import EmbeddedStoreError
from server.playground.assets import AssetsUnavailable
from server.process.checks import UnsafeStart
from server.seeding.load import SeedRefused
from server.settings import SettingsError

EXPECTED = (
    SettingsError,
    UnsafeStart,
    EmbeddedStoreError,
    AssetsUnavailable,
    SeedRefused,
    SchemaMismatch,
    ArchiverStopped,
    ConflictingEvent,
    OutdatedWorker,
    Overloaded,
    RebuildRefused,
    StoreReplaced,
    WrongArchive,
)


def explain(error: Exception) -> None:
    """Print what went wrong and what to do. Re-raise an unexpected error."""
    if isinstance(error, StoreNotReady):
        text = error.reason
    elif isinstance(error, StoreUnavailable):
        text = f"The store does not answer: {error.reason}"
    elif isinstance(error, ArchiveUnavailable):
        text = f"The archive does not answer: {error.reason}"
    elif isinstance(error, EXPECTED):
        text = str(error)
    else:
        raise error
    say_labelled("fanline:", text, "red")
