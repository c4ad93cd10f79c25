"""Settings: what the environment says, checked once at the start. Every name is prefixed with `FANLINE_`.

`Settings.load` reads any mapping, so a test needs no real environment. A setting that does not exist, or that
is unsafe in production is an error with a sentence that says what to do.
"""

import difflib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import platformdirs
from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict
from sqlalchemy import URL
from strawberry.http.websocket_origin import normalize_allowed_origins

from graph import Tuning
from graph.archive.database import read_url
from graph.store.store import check_url
from server.embedded import Durability
from server.operations.document_size import DocumentLimits
from server.setting_values import Count, Duration, read_list
from server.signing_keys import make_key_file, weakness
from server.transport.proxies import parse_proxies

PREFIX = "FANLINE_"
TOKEN_CHARACTERS = 16
WORDING = {
    "bool_parsing": "must be true or false",
    "enum": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of at most 15 digits",
    "less_than_equal": "must be at most {le}",
}
CONTINUES = ("must ", "has ", "is ")  # messages that continue the name of the setting


class SettingsError(Exception):
    """A setting is wrong; the message names it and says what it may be."""


class Env(Enum):
    """Who can reach the process: its developers, or the world."""

    DEVELOPMENT = "development"
    PRODUCTION = "production"


class TimelineMode(Enum):
    """How home timelines come to be: written when a post is published, merged when they are read, or either.

    In `hybrid` the author decides: up to `PUSH_LIMIT` followers their caches are written, beyond it reads merge.
    """

    PUSH = "push"
    PULL = "pull"
    HYBRID = "hybrid"


class TrustedDocumentsMode(Enum):
    """Which documents clients may execute: their own (`off`), their own and trusted ones, or trusted ones only."""

    OFF = "off"
    ALLOW = "allow"
    ONLY = "only"


class Settings(BaseSettings):
    """How this process runs. Construct it with keywords in tests; `load` is for the real environment."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", enable_decoding=False, hide_input_in_errors=True
    )

    data_dir: Path = Field(
        default_factory=lambda: Path(platformdirs.user_data_dir("fanline")),
        description="The folder of the embedded store, of the SQLite archive and of the generated secret.",
    )
    store_url: str | None = Field(
        default=None,
        repr=False,
        description="A Valkey or Redis server; if not set, an embedded one runs in the data folder.",
    )
    archive_url: str | None = Field(
        default=None,
        repr=False,
        description="The SQL database of older posts: SQLite, PostgreSQL or MySQL; if not set, a file of SQLite in "
        "the data folder.",
    )
    secret: Annotated[tuple[str, ...], BeforeValidator(read_list)] = Field(
        default=(),
        repr=False,
        description="Keys of access tokens, 32 bytes or more each, separated by commas: the first signs, all "
        "verify. If not set, one is made in the data folder; production requires it.",
    )
    secret_file: Path | None = Field(
        default=None, description="A file with such keys, one per line; use it instead of FANLINE_SECRET."
    )
    metrics_token: str | None = Field(
        default=None,
        repr=False,
        description="The bearer token that `/metrics` requires; if not set, `/metrics` is not served in production.",
    )
    env: Env = Field(default=Env.DEVELOPMENT, description="`production` refuses unsafe settings.")
    timeline_mode: TimelineMode = Field(
        default=TimelineMode.HYBRID,
        description="Home timelines are written on publishing (`push`), merged on reading (`pull`), or, by the "
        "author's number of followers, the one or the other (`hybrid`).",
    )
    push_limit: Count = Field(default=10000, description="In `hybrid`: the most followers that are pushed to.")
    home_size: Count = Field(default=800, description="Posts kept in a cached home timeline.")
    hot_posts: Count = Field(default=1000, description="Newest posts of an author kept out of the archive.")
    sync_followers: Count = Field(default=1000, description="Followers served before publishing answers.")
    hibernate_after: Duration = Field(default=timedelta(days=7), description="Life of a home timeline not read.")
    log_retention: Duration = Field(default=timedelta(hours=24), description="How far back the log can be replayed.")
    max_following: Count = Field(default=5000, description="How many people one person can follow.")
    durability: Durability = Field(
        default=Durability.SAFE,
        description="The embedded store: `safe` syncs before it answers, `relaxed` each second.",
    )
    session_ttl: Duration = Field(default=timedelta(days=30), description="Life of a session and its token.")
    worker: bool = Field(
        default=True, description="Whether the API's process projects the log too; else run `fanline worker`."
    )
    max_body: Count = Field(default=100_000, description="Bytes of a request's body, or of a WebSocket message.")
    max_tokens: Count = Field(default=2000, description="Tokens of a document.")
    max_depth: Count = Field(default=20, description="How deeply a document's selections may nest.")
    max_selections: Count = Field(default=1000, description="Selections of a document, fragments counted where spread.")
    max_aliases: Count = Field(default=100, description="Aliases of a document, fragments counted where spread.")
    max_directives: Count = Field(default=100, description="Directives of a document, fragments counted where spread.")
    max_cost: Count = Field(default=20000, description="Points that one operation may cost: objects and values.")
    max_event_cost: Count = Field(default=500, description="Points that one event of a subscription may cost.")
    max_response: Count = Field(default=5_000_000, description="Bytes that the data of one response may have.")
    deadline: Duration = Field(default=timedelta(seconds=10), description="How long one operation may take.")
    rate_limits: bool | None = Field(
        default=None,
        description="Whether the rates of viewers and addresses are limited; if not set, in production only.",
    )
    points_per_minute: Count = Field(
        default=60_000, description="While rates are limited: points of a viewer, or of an anonymous address."
    )
    writes_per_minute: Count = Field(
        default=60, description="While rates are limited: entries that a viewer writes, each followed user counted."
    )
    log_ins_per_minute: Count = Field(default=10, description="While rates are limited: log-ins from one address.")
    sign_ups_per_hour: Count = Field(default=5, description="While rates are limited: sign-ups from one address.")
    operations_at_once: Count = Field(
        default=4, description="While rates are limited: operations of one viewer or address that run at once."
    )
    max_anonymous_streams: Count = Field(
        default=20, description="While rates are limited: live subscriptions of one anonymous address in a process."
    )
    max_streams: Count = Field(
        default=1000,
        description="Live subscriptions of one viewer, or anonymous address, in a process, over all transports.",
    )
    max_filter_terms: Count = Field(
        default=50_000,
        description="Terms in the event filters of one viewer in a process; an anonymous address may hold a hundredth.",
    )
    max_connections: Count = Field(
        default=100, description="While rates are limited: connections of one address in a process."
    )
    trusted_proxies: Annotated[tuple[str, ...], BeforeValidator(read_list)] = Field(
        default=(),
        description="Addresses or networks of proxies whose `X-Forwarded-For` and `-Proto` are believed; `unix` for a "
        "unix socket.",
    )
    executor: bool = Field(
        default=True, description="Whether operations are executed breadth first; else graphql-core does it."
    )
    allowed_origins: Annotated[tuple[str, ...], BeforeValidator(read_list)] = Field(
        default=(),
        description="Web origins, besides the server's own, whose pages may use the API; `*` for all.",
    )
    introspection: bool | None = Field(
        default=None, description="Whether the schema can be asked for; if not set, not in production."
    )
    playground: bool | None = Field(
        default=None, description="Whether the playground is open; if not set, not in production."
    )
    trusted_documents: Path | None = Field(
        default=None,
        description="A manifest of trusted documents, or a folder of manifests and of `.graphql` files.",
    )
    trusted_documents_mode: TrustedDocumentsMode | None = Field(
        default=None,
        description="`only` executes trusted documents and no others, `allow` executes both, `off` ignores trusted "
        "documents. If not set: `allow` with trusted documents, `off` without.",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take keywords only: `load` is what reads an environment."""
        return (init_settings,)

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ, **given: Any) -> "Settings":
        """Read the settings from an environment; keywords win over it. Raises SettingsError."""
        present = {name: value for name, value in environ.items() if name.startswith(PREFIX) and value.strip()}
        _refuse_unknown(name.removeprefix(PREFIX) for name in present)
        source = EnvSettingsSource(cls)
        source.env_vars = {name.lower(): value.strip() for name, value in present.items()}
        try:
            return cls(**{**source(), **given})
        except ValidationError as error:
            raise SettingsError("\n".join(_sentences(error))) from None

    @field_validator("data_dir", "secret_file", mode="after")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        return value and value.expanduser().absolute()

    @field_validator("trusted_documents", mode="after")
    @classmethod
    def _expand_documents(cls, value: Path | None) -> Path | None:
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
            raise ValueError(f"each key {found}; `openssl rand -base64 48` makes one")
        return value

    @field_validator("metrics_token", mode="after")
    @classmethod
    def _long_token(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(rf"[!-~]{{{TOKEN_CHARACTERS},}}", value):
            raise ValueError(f"must have {TOKEN_CHARACTERS} ASCII characters or more; `openssl rand -hex 32` makes one")
        return value

    @field_validator("allowed_origins", mode="after")
    @classmethod
    def _real_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(sorted(normalize_allowed_origins(value)))

    @field_validator("trusted_proxies", mode="after")
    @classmethod
    def _real_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return parse_proxies(value)

    @field_validator("env", "durability", "timeline_mode", "trusted_documents_mode", mode="before")
    @classmethod
    def _built(cls, value: object) -> object:
        if value == "strict":
            raise ValueError(f"`{value}` belongs to a later version")
        return value.lower() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _safe_in_production(self) -> "Settings":
        if self.secret and self.secret_file:
            raise ValueError("Set FANLINE_SECRET or FANLINE_SECRET_FILE, not both")
        if self.production and not self.secret and not self.secret_file:
            raise ValueError(
                "In production, set FANLINE_SECRET or FANLINE_SECRET_FILE; `openssl rand -base64 48` makes a key"
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
        """Whether the world can reach this process."""
        return self.env is Env.PRODUCTION

    @property
    def shows_metrics(self) -> bool:
        """Whether `/metrics` is served."""
        return not self.production or self.metrics_token is not None

    @property
    def shows_schema(self) -> bool:
        """Whether introspection and `/schema.graphql` are open."""
        return not self.production if self.introspection is None else self.introspection

    @property
    def shows_playground(self) -> bool:
        """Whether `/playground` is open."""
        return not self.production if self.playground is None else self.playground

    @property
    def limits_rates(self) -> bool:
        """Whether the rates of viewers and addresses are limited."""
        return self.production if self.rate_limits is None else self.rate_limits

    @property
    def document_limits(self) -> DocumentLimits:
        """How large a document may be."""
        return DocumentLimits(
            self.max_tokens, self.max_depth, self.max_selections, self.max_aliases, self.max_directives
        )

    @property
    def trust(self) -> TrustedDocumentsMode:
        """Which documents clients may execute."""
        if self.trusted_documents_mode is not None:
            return self.trusted_documents_mode
        return TrustedDocumentsMode.ALLOW if self.trusted_documents else TrustedDocumentsMode.OFF

    @property
    def archive(self) -> str:
        """The URL of the archive: the setting's, or that of a file in the data folder."""
        if self.archive_url is not None:
            return self.archive_url
        file = str(self.data_dir / "archive.sqlite")
        return URL.create("sqlite+aiosqlite", database=file).render_as_string()

    @property
    def tuning(self) -> Tuning:
        """What of these settings concerns the social graph."""
        return Tuning(
            home_size=self.home_size,
            hot_posts=self.hot_posts,
            sync_followers=self.sync_followers,
            push_limit=self._push_limit,
            hibernate_after=self.hibernate_after,
            log_retention=self.log_retention,
            max_following=self.max_following,
            session_ttl=self.session_ttl,
        )

    @property
    def _push_limit(self) -> float:
        limits = {TimelineMode.PUSH: math.inf, TimelineMode.PULL: 0, TimelineMode.HYBRID: self.push_limit}
        return limits[self.timeline_mode]

    def keys(self) -> tuple[str, ...]:
        """Return the keys of access tokens: the setting's, the secret file's, or the data folder's, made on first use.

        A file holds one key a line; two processes that make it at once get the same. Raises SettingsError.
        """
        if self.secret:
            return self.secret
        path = self.secret_file or self.data_dir / "secret"
        try:
            if not self.secret_file and not path.exists():
                make_key_file(path)
            keys = tuple(path.read_text(encoding="ascii").split())
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"The secret in {path} cannot be read or created: {error}.") from error
        if not keys:
            raise SettingsError(f"{path} contains no key; `openssl rand -base64 48` makes one.")
        if found := next(filter(None, map(weakness, keys)), None):
            raise SettingsError(f"{path}: each key {found}; `openssl rand -base64 48` makes one.")
        return keys


def _refuse_unknown(names: Iterable[str]) -> None:
    """Raise SettingsError for a setting that does not exist."""
    known = [name.upper() for name in Settings.model_fields]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {PREFIX}{close[0]}?" if close else ""
            raise SettingsError(f"{PREFIX}{name} is not a setting.{hint}")


def _sentences(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False):
        wording = WORDING.get(problem["type"])
        message = wording.format(**problem.get("ctx", {})) if wording else problem["msg"].removeprefix("Value error, ")
        name = f"{PREFIX}{str(problem['loc'][0]).upper()}" if problem["loc"] else ""
        separator = "" if not name else " " if message.startswith(CONTINUES) else ": "
        yield f"{name}{separator}{message.removesuffix('.')}."
