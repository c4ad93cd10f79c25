"""Variants of Fanline: as it is served, without its near cache, and without the executor."""

from pathlib import Path
from typing import Any

import uvicorn

from benchmarks.stores import archive_url
from executor import Executor
from executor.plan import Fallback
from server.app import create_app
from server.operations import execution
from server.process.garbage import SERVER, freeze
from server.process.logs import LOGGING
from server.serving import configure
from server.settings import Settings

ALWAYS_READING = {"FANLINE_NEAR_CACHE": "0", "FANLINE_LOAD_SHEDDING": "off"}


class GraphQLCore(Executor):
    """Passes all operations to graphql-core."""

    def prepare(self, *_: Any) -> Fallback:
        """Return a fallback, so that no operation is planned."""
        return Fallback("The benchmark compares with graphql-core.")


def fanline(url: str, folder: Path, key: str) -> uvicorn.Config:
    """Return the configuration of Fanline without its near cache: no peer has one. A worker process runs fan-outs.

    Load shedding is off, because clients that send requests without pause are an overload.
    """
    return _configured(ALWAYS_READING, url, folder, key)


def near_cache(url: str, folder: Path, key: str) -> uvicorn.Config:
    """Return the configuration of Fanline with its near cache, which has room for all records of the world."""
    return _configured({"FANLINE_LOAD_SHEDDING": "off"}, url, folder, key)


def executor_off(url: str, folder: Path, key: str) -> uvicorn.Config:
    """Return the configuration of Fanline with Strawberry's own execution, which is that of graphql-core."""
    execution.Executor = GraphQLCore  # type: ignore[attr-defined]  # in a process of its own
    return _configured(ALWAYS_READING, url, folder, key)


def limited(url: str, folder: Path, key: str) -> uvicorn.Config:
    """Return the configuration of `fanline` with load shedding."""
    return _configured({"FANLINE_NEAR_CACHE": "0"}, url, folder, key)


def _configured(environment: dict[str, str], url: str, folder: Path, key: str) -> uvicorn.Config:
    settings = Settings.load(
        environment, store_url=url, archive_url=archive_url(url), data_dir=folder, secret=(key,), worker=False
    )
    quiet = {**LOGGING, "root": {**LOGGING["root"], "level": "WARNING"}}
    config = configure(create_app(settings), log_config=quiet, timeout_graceful_shutdown=1)
    freeze(SERVER)
    return config
