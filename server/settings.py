"""The settings, read from environment variables with the prefix `FANLINE_` and validated at start-up.

An unknown setting, or one that is unsafe in production, is an error whose message names the remedy. `Settings.load`
accepts any mapping, so tests need no real environment.
"""

import difflib
import math
import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator
from sqlalchemy import URL

from graph import Tuning
from graph.archive.database import read_url
from graph.store.urls import check_url
from server.embedded import Durability
from server.observability_settings import ObservabilitySettings
from server.rate_settings import RateSettings
from server.setting_messages import sentences
from server.setting_values import (
    Count,
    Duration,
    Env,
    HeaderNames,
    Hosts,
    Logins,
    LogLimit,
    Names,
    Share,
    TimelineMode,
    TrustedDocumentsMode,
)
from server.signing_keys import make_key_file, weakness
from server.transport.proxies import parse_proxies

PREFIX = "FANLINE_"


class SettingsError(Exception):
    """A setting is invalid. The message names the setting and the values that it accepts."""


class Settings(ObservabilitySettings, RateSettings):
    """The settings of a process. `load` reads them from the environment; tests pass keyword arguments."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)

    data_dir: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("fanline")),
        description="The folder of the embedded store, of the SQLite archive and of the generated secret.",
    )
    store_url: str | None = Field(
        default=None,
        repr=False,
        description="The Valkey or Redis server. If not set, an embedded Valkey runs in the data folder.",
    )
    archive_url: str | None = Field(
        default=None,
        repr=False,
        description="The SQL database of the archive, which keeps all events: SQLite, PostgreSQL or MySQL. If not set, "
        "an SQLite file in the data folder.",
    )
    secret: Names = Field(
        default=(),
        repr=False,
        description="Keys that sign access tokens, separated by commas, each at least 32 bytes. The first key signs, "
        "and all keys verify. If not set, a key is created in the data folder; production requires the setting.",
    )
    secret_file: Path | None = Field(
        default=None, description="A file with the keys of access tokens, one per line, instead of FANLINE_SECRET."
    )
    env: Env = Field(default=Env.DEVELOPMENT, description="`production` refuses unsafe settings.")
    timeline_mode: TimelineMode = Field(
        default=TimelineMode.HYBRID,
        description="Posts are pushed to followers when published (`push`), merged when timelines are read "
        "(`pull`), or either, depending on the author's number of followers (`hybrid`).",
    )
    push_limit: Count = Field(
        default=10000, description="In `hybrid`: posts of authors with more followers are not pushed."
    )
    home_size: Count = Field(default=800, description="Maximum posts in a home cache.")
    hot_posts: Count = Field(
        default=1000, description="Newest posts of an author, and newest replies to a post, that stay in the store."
    )
    hot_age: Duration = Field(
        default=timedelta(days=30), description="Age at which posts leave the store, except an author's newest 50."
    )
    sync_followers: Count = Field(
        default=1000, description="Maximum followers that get a post before publishPost returns."
    )
    hibernate_after: Duration = Field(
        default=timedelta(days=7), description="Maximum age of a home cache; the next read rebuilds an older one."
    )
    log_retention: Duration = Field(default=timedelta(hours=24), description="How long the log keeps its events.")
    log_limit: LogLimit = Field(
        default=2_000_000,
        description="Maximum events in the log. The last tenth is reserved for deletions, unfollows, blocks and "
        "log-outs.",
    )
    store_full_at: Share = Field(
        default=0.9,
        description="Fraction of the store's memory above which only deletions, unfollows, blocks and log-outs are "
        "accepted.",
    )
    near_cache: int | None = Field(
        default=None,
        ge=0,
        description="Maximum users, posts, counts and similar values that a process caches; 0 disables the cache. "
        "Default: 50,000, or 0 with a cluster.",
    )
    worker_lag: Duration = Field(
        default=timedelta(minutes=10), description="Lag of the worker at which `/health/ready` returns 503."
    )
    archive_lag: Duration = Field(
        default=timedelta(minutes=10), description="Lag of the archive at which `/health/ready` warns."
    )
    max_archive_lag: Duration = Field(
        default=timedelta(hours=12), description="Lag of the archive at which `/health/ready` returns 503."
    )
    ready_while_degraded: bool = Field(
        default=False, description="Whether `/health/ready` returns 200 while pages are served but changes are refused."
    )
    max_following: Count = Field(default=5000, description="Maximum users that one user can follow.")
    max_blocked: Count = Field(
        default=10_000, description="Maximum users that one user can mute; the same limit applies to blocks."
    )
    media_hosts: Hosts = Field(
        default=(), description="Hosts of the pictures and videos that posts and users may show."
    )
    reserved_logins: Logins = Field(
        default=("admin", "administrator", "fanline", "help", "moderator", "official", "root", "security", "support"),
        description="Logins that nobody can sign up with.",
    )
    durability: Durability = Field(
        default=Durability.SAFE,
        description="When a write is acknowledged. The embedded store: when it is on disk (`safe`), or up to a second "
        "earlier (`relaxed`). Another store: when its replicas have it (`strict`).",
    )
    replicas: Count = Field(
        default=1, description="With `FANLINE_DURABILITY=strict`: replicas of each shard that must have a write."
    )
    session_ttl: Duration = Field(default=timedelta(days=30), description="Lifetime of a session and its token.")
    worker: bool = Field(
        default=True, description="Whether the API process also runs a worker. If not, run `fanline worker`."
    )
    max_body: Count = Field(default=100_000, description="Maximum bytes of a request body or WebSocket message.")
    max_tokens: Count = Field(default=2000, description="Maximum tokens of a document.")
    max_depth: Count = Field(default=20, description="Maximum nesting of selections in a document.")
    max_selections: Count = Field(
        default=1000, description="Maximum selections of a document. A fragment counts each time it is spread."
    )
    max_aliases: Count = Field(
        default=100, description="Maximum aliases of a document. A fragment counts each time it is spread."
    )
    max_directives: Count = Field(
        default=100, description="Maximum directives of a document. A fragment counts each time it is spread."
    )
    max_cost: Count = Field(default=20000, description="Maximum cost of an operation, in points.")
    max_event_cost: Count = Field(default=500, description="Maximum cost of one event of a subscription, in points.")
    max_response: Count = Field(default=5_000_000, description="Maximum bytes of the data in a response.")
    deadline: Duration = Field(default=timedelta(seconds=10), description="Maximum duration of an operation.")
    load_shedding: bool = Field(
        default=True, description="Whether operations are refused at once while the process cannot keep up."
    )
    trusted_proxies: Names = Field(
        default=(),
        description="Addresses or networks of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted; "
        "`unix` for a unix socket.",
    )
    allowed_origins: Names = Field(
        default=(), description="Other web origins whose pages can use the API; `*` allows all."
    )
    allowed_headers: HeaderNames = Field(
        default=(), description="Additional request headers that pages of the allowed origins may send."
    )
    introspection: bool | None = Field(
        default=None, description="Whether introspection is enabled. Default: enabled except in production."
    )
    playground: bool | None = Field(
        default=None, description="Whether the playground is served. Default: enabled except in production."
    )
    trusted_documents: Path | None = Field(
        default=None, description="A manifest of trusted documents, or a folder of manifests and `.graphql` files."
    )
    trusted_documents_mode: TrustedDocumentsMode | None = Field(
        default=None,
        description="`only` executes only trusted documents, `allow` executes any, `off` ignores trusted documents. "
        "If not set: `allow` if there are trusted documents, else `off`.",
    )

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ, **given: Any) -> "Settings":
        """Return the settings of an environment, overridden by keyword arguments. Raises SettingsError."""
        present = {
            name.removeprefix(PREFIX): value.strip()
            for name, value in environ.items()
            if name.startswith(PREFIX) and value.strip()
        }
        _refuse_unknown(present)
        try:
            return cls(**{**{name.lower(): value for name, value in present.items()}, **given})
        except ValidationError as error:
            raise SettingsError("\n".join(sentences(error, PREFIX))) from None

    @field_validator("data_dir", "secret_file", "trusted_documents", mode="after")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        return value and value.expanduser().absolute()

    @field_validator("store_url", mode="after")
    @classmethod
    def _known_store(cls, value: str | None) -> str | None:
        if value is not None:
            check_url(value)
        return value

    @field_validator("archive_url", mode="after")
    @classmethod
    def _known_archive(cls, value: str | None) -> str | None:
        if value is not None:
            read_url(value)
        return value

    @field_validator("secret", mode="after")
    @classmethod
    def _strong_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if found := next(filter(None, map(weakness, value)), None):
            raise ValueError(f"each key {found}; create one with `openssl rand -base64 48`")
        return value

    @field_validator("allowed_origins", mode="after")
    @classmethod
    def _real_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            return ()
        from strawberry.http.websocket_origin import normalize_allowed_origins  # most commands do not need strawberry

        return tuple(sorted(normalize_allowed_origins(value)))

    @field_validator("trusted_proxies", mode="after")
    @classmethod
    def _real_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return parse_proxies(value)

    @field_validator("env", "durability", "log_format", "timeline_mode", "trusted_documents_mode", mode="before")
    @classmethod
    def _built(cls, value: object) -> object:
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _safe_in_production(self) -> "Settings":
        if self.secret and self.secret_file:
            raise ValueError("Set FANLINE_SECRET or FANLINE_SECRET_FILE, not both")
        if self.production and not self.secret and not self.secret_file:
            raise ValueError(
                "In production, set FANLINE_SECRET or FANLINE_SECRET_FILE; create a key with `openssl rand -base64 48`"
            )
        if self.production and "*" in self.allowed_origins:
            raise ValueError("In production, FANLINE_ALLOWED_ORIGINS must name origins, not `*`")
        return self

    @model_validator(mode="after")
    def _documents_to_trust(self) -> "Settings":
        mode = self.trusted_documents_mode
        if self.trusted_documents is None and mode not in (None, TrustedDocumentsMode.OFF):
            raise ValueError(
                f"FANLINE_TRUSTED_DOCUMENTS_MODE={mode.value} needs FANLINE_TRUSTED_DOCUMENTS, the path of a manifest "
                "or of a folder"
            )
        return self

    @property
    def production(self) -> bool:
        """Whether this process serves the public."""
        return self.env is Env.PRODUCTION

    @property
    def embedded_durability(self) -> Durability:
        """The durability of the embedded store. Raises SettingsError for `strict`, because it has no replicas."""
        if self.durability is Durability.STRICT:
            raise SettingsError("FANLINE_DURABILITY=strict needs a store with replicas: set FANLINE_STORE_URL")
        return self.durability

    @property
    def wait_for_replicas(self) -> int:
        """The number of replicas that must have a write before it is acknowledged."""
        return self.replicas if self.durability is Durability.STRICT else 0

    @property
    def shows_metrics(self) -> bool:
        """Whether `/metrics` is served."""
        return not self.production or self.metrics_token is not None

    @property
    def shows_schema(self) -> bool:
        """Whether introspection is enabled and `/schema.graphql` is served."""
        return not self.production if self.introspection is None else self.introspection

    @property
    def shows_playground(self) -> bool:
        """Whether `/playground` is served."""
        return not self.production if self.playground is None else self.playground

    @property
    def explains(self) -> bool:
        """Whether clients may ask what their operations cost."""
        return not self.production if self.explain is None else self.explain

    @property
    def limits_rates(self) -> bool:
        """Whether the rates of viewers and addresses are limited."""
        return self.production if self.rate_limits is None else self.rate_limits

    @property
    def trust(self) -> TrustedDocumentsMode:
        """The mode of trusted documents. If unset, it is `allow` if there are trusted documents, else `off`."""
        if self.trusted_documents_mode is not None:
            return self.trusted_documents_mode
        return TrustedDocumentsMode.ALLOW if self.trusted_documents else TrustedDocumentsMode.OFF

    @property
    def archive(self) -> str:
        """The URL of the archive: the setting, or an SQLite file in the data folder."""
        if self.archive_url is not None:
            return self.archive_url
        return URL.create("sqlite+aiosqlite", database=str(self.data_dir / "archive.sqlite")).render_as_string()

    @property
    def tuning(self) -> Tuning:
        """The settings that the graph uses."""
        return Tuning(
            home_size=self.home_size,
            hot_posts=self.hot_posts,
            hot_age=self.hot_age,
            sync_followers=self.sync_followers,
            push_limit=self._push_limit,
            hibernate_after=self.hibernate_after,
            log_retention=self.log_retention,
            log_limit=self.log_limit,
            store_full_at=self.store_full_at,
            max_following=self.max_following,
            max_blocked=self.max_blocked,
            session_ttl=self.session_ttl,
            media_hosts=frozenset(self.media_hosts),
            reserved_logins=frozenset(self.reserved_logins),
        )

    @property
    def _push_limit(self) -> float:
        return {TimelineMode.PUSH: math.inf, TimelineMode.PULL: 0}.get(self.timeline_mode, self.push_limit)

    def keys(self) -> tuple[str, ...]:
        """Return the keys that sign access tokens: from the setting, the secret file, or a file in the data folder.

        The file in the data folder is created on first use; processes that create it at the same time get the same
        key. A file holds one key per line. Raises SettingsError.
        """
        if self.secret:
            return self.secret
        path = self.secret_file or self.data_dir / "secret"
        try:
            if not self.secret_file and not path.exists():
                make_key_file(path)
        except OSError as error:
            folder = f"The data folder {self.data_dir} cannot be used"
            raise SettingsError(f"{folder}: {error.strerror}. FANLINE_DATA_DIR sets it.") from error
        try:
            keys = tuple(path.read_text(encoding="ascii").split())
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"The secret in {path} cannot be read: {error}.") from error
        if not keys:
            raise SettingsError(f"{path} contains no key; create one with `openssl rand -base64 48`.")
        if found := next(filter(None, map(weakness, keys)), None):
            raise SettingsError(f"{path}: each key {found}; create one with `openssl rand -base64 48`.")
        return keys


def _refuse_unknown(names: Iterable[str]) -> None:
    """Raise SettingsError if one of these names is not a setting."""
    known = [name.upper() for name in Settings.model_fields]
    for name in sorted(set(names).difference(known)):
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {PREFIX}{close[0]}?" if close else ""
        raise SettingsError(f"{PREFIX}{name} is not a setting.{hint}")
