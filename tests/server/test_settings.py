"""Settings: every mistake is reported at start-up, and unsafe settings are refused in production."""

import math
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from graph.archive.archive import Archive
from server.embedded import Durability
from server.lifespan import NEAR_CACHE, near_cache_of
from server.setting_values import Env, TimelineMode
from server.settings import Settings, SettingsError

KEY = "0123456789abcdefghijklmnopqrstuv"


def test_an_empty_environment_gives_a_development_server_with_an_embedded_store() -> None:
    """No setting is required."""
    settings = Settings.load({})
    assert settings.env is Env.DEVELOPMENT
    assert settings.store_url is None
    assert settings.durability is Durability.SAFE
    assert settings.shows_playground
    assert settings.shows_schema


def test_every_setting_is_read_from_the_environment(tmp_path: Path) -> None:
    """The prefix is FANLINE_; lists are separated by commas, durations have a unit."""
    settings = Settings.load(
        {
            "FANLINE_DATA_DIR": str(tmp_path),
            "FANLINE_STORE_URL": "valkeys://user:word@store:6380/2",
            "FANLINE_ARCHIVE_URL": "postgres://user:word@sql/fanline",
            "FANLINE_SECRET": f"{KEY}, {KEY}2",
            "FANLINE_ENV": "production",
            "FANLINE_TIMELINE_MODE": "pull",
            "FANLINE_HIBERNATE_AFTER": "36h",
            "FANLINE_SESSION_TTL": "7 d",
            "FANLINE_HOME_SIZE": "50",
            "FANLINE_HOT_POSTS": "70",
            "FANLINE_HOT_AGE": "12d",
            "FANLINE_NEAR_CACHE": "500",
            "FANLINE_LOG_LIMIT": "50000",
            "FANLINE_ARCHIVE_LAG": "3m",
            "FANLINE_ALLOWED_ORIGINS": "https://a.example https://B.example:443",
            "FANLINE_ALLOWED_HEADERS": "X-Client, x-tenant x-client",
            "FANLINE_PLAYGROUND": "true",
            "FANLINE_MEDIA_HOSTS": "Media.example.org, cdn.example.org:8443",
            "FANLINE_RESERVED_LOGINS": "Boss, root",
            "OTHER": "ignored",
        }
    )
    assert settings.keys() == (KEY, f"{KEY}2")
    assert settings.production
    assert settings.timeline_mode is TimelineMode.PULL
    assert settings.allowed_origins == ("https://a.example", "https://b.example")
    assert settings.allowed_headers == ("x-client", "x-tenant")
    assert settings.shows_playground
    assert not settings.shows_schema
    assert settings.tuning.push_limit == 0
    assert settings.tuning.home_size == 50
    assert settings.tuning.media_hosts == {"media.example.org", "cdn.example.org:8443"}
    assert settings.tuning.reserved_logins == {"boss", "root"}
    assert settings.tuning.hot_posts == 70
    assert settings.near_cache == 500
    assert settings.tuning.hot_age == timedelta(days=12)
    assert settings.tuning.log_limit == 50_000
    assert settings.archive_lag == timedelta(minutes=3)
    assert settings.archive == "postgres://user:word@sql/fanline"
    assert settings.tuning.hibernate_after == timedelta(hours=36)
    assert settings.tuning.session_ttl == timedelta(days=7)


@pytest.mark.parametrize(("mode", "limit"), [("push", math.inf), ("pull", 0), ("hybrid", 25)])
def test_the_timeline_mode_is_one_limit(mode: str, limit: float) -> None:
    """The limit of followers is infinite for push, zero for pull, and configurable for hybrid."""
    settings = Settings.load({"FANLINE_TIMELINE_MODE": mode, "FANLINE_PUSH_LIMIT": "25"})
    assert settings.tuning.push_limit == limit


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("STORE_URI", "redis://x", "FANLINE_STORE_URI is not a setting. Did you mean FANLINE_STORE_URL?"),
        ("STORE_URL", "http://x", "FANLINE_STORE_URL must begin with one of valkey://"),
        ("STORE_URL", "redis://localhost:abc", "FANLINE_STORE_URL "),
        ("STORE_URL", "redis://localhost?socket_timeout=x", "FANLINE_STORE_URL "),
        ("STORE_URL", "redis://localhost?protocol=2", "FANLINE_STORE_URL must not set protocol"),
        (
            "STORE_URL",
            "valkey+cluster://a:1,b",
            "FANLINE_STORE_URL: node 2 of the cluster must have the form host:6379",
        ),
        (
            "STORE_URL",
            "valkey+cluster://u:short@a:b",
            "FANLINE_STORE_URL: node 1 of the cluster must have the form host:6379",
        ),
        ("STORE_URL", "valkey://u:short#@store", "FANLINE_STORE_URL must have the form valkey://user:password@"),
        ("SECRET", "short", "FANLINE_SECRET: each key must have at least 32 bytes"),
        ("SECRET", f"{KEY},short", "FANLINE_SECRET: each key must have at least 32 bytes"),
        ("SECRET", "k" * 48, "FANLINE_SECRET: each key must have at least 8 different bytes"),
        ("SECRET", "changeme" * 6, "FANLINE_SECRET: each key must have at least 8 different bytes"),
        ("SECRET", "0123456789" * 6, "FANLINE_SECRET: each key must not repeat itself"),
        ("ENV", "staging", "FANLINE_ENV must be 'development' or 'production'"),
        ("HOME_SIZE", "0", "FANLINE_HOME_SIZE must be greater than 0"),
        ("HOME_SIZE", "many", "FANLINE_HOME_SIZE must be a whole number"),
        ("SESSION_TTL", "soon", "FANLINE_SESSION_TTL must be a number and a unit"),
        ("SESSION_TTL", "0s", "FANLINE_SESSION_TTL must be longer than zero"),
        ("TIMELINE_MODE", "guess", "FANLINE_TIMELINE_MODE must be 'push', 'pull' or 'hybrid'"),
        ("PUSH_LIMIT", "0", "FANLINE_PUSH_LIMIT must be greater than 0"),
        ("REPLICAS", "0", "FANLINE_REPLICAS must be greater than 0"),
        ("ALLOWED_ORIGINS", "example.com/app", "FANLINE_ALLOWED_ORIGINS: Invalid origin"),
        ("ALLOWED_HEADERS", "x-a, *", "FANLINE_ALLOWED_HEADERS: every entry must be the name of a header"),
        ("ALLOWED_HEADERS", "x-a: b", "such as x-client-name, not 'x-a:'"),
        ("ARCHIVE_URL", "oracle://u:short@h/d", "FANLINE_ARCHIVE_URL must begin with sqlite:///, postgresql:// or"),
        ("ARCHIVE_URL", "mysql://u:short@h:port/d", "FANLINE_ARCHIVE_URL must have the form mysql://user:password@"),
        ("ARCHIVE_URL", "sqlite://", "FANLINE_ARCHIVE_URL must name a file"),
        ("HOT_POSTS", "0", "FANLINE_HOT_POSTS must be greater than 0"),
        ("NEAR_CACHE", "-1", "FANLINE_NEAR_CACHE must be"),
        ("LOG_LIMIT", "9999", "FANLINE_LOG_LIMIT must be at least 10000"),
        (
            "MEDIA_HOSTS",
            "a.example, https://b.example",
            "FANLINE_MEDIA_HOSTS: every host must be a domain",
        ),
        ("RESERVED_LOGINS", "root, a-b", "FANLINE_RESERVED_LOGINS: every login must have 2 to 30 characters"),
        ("METRICS_TOKEN", "short-token", "FANLINE_METRICS_TOKEN must have 16 ASCII characters or more"),
        ("METRICS_TOKEN", "a short token and spaces", "FANLINE_METRICS_TOKEN must have 16 ASCII characters or more"),
        ("RATE_LIMIT", "100", "FANLINE_RATE_LIMIT is not a setting. Did you mean FANLINE_RATE_LIMITS?"),
        ("TRUSTED_PROXIES", "10.0.0.0/8, proxy", "FANLINE_TRUSTED_PROXIES: 'proxy' must be an address, a network"),
        ("MAX_CONNECTIONS", "0", "FANLINE_MAX_CONNECTIONS must be greater than 0"),
        ("MAX_STREAMS_PER_FIELD", "0", "FANLINE_MAX_STREAMS_PER_FIELD must be greater than 0"),
        ("EVENT_POINTS_PER_MINUTE", "-1", "FANLINE_EVENT_POINTS_PER_MINUTE must be greater than 0"),
        ("ENV", "production", "In production, set FANLINE_SECRET"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: str, sentence: str) -> None:
    """The message names the setting and its allowed values, but not its value."""
    with pytest.raises(SettingsError) as caught:
        Settings.load({f"FANLINE_{name}": value})
    assert sentence in str(caught.value)
    assert "short" not in str(caught.value)


def test_production_does_not_open_the_api_to_every_origin() -> None:
    """A wildcard is for development."""
    with pytest.raises(SettingsError, match="must name origins"):
        Settings.load({"FANLINE_ENV": "production", "FANLINE_SECRET": KEY, "FANLINE_ALLOWED_ORIGINS": "*"})


def test_the_embedded_store_has_no_replicas_to_wait_for() -> None:
    settings = Settings.load({"FANLINE_DURABILITY": "strict"})
    with pytest.raises(SettingsError, match="FANLINE_DURABILITY=strict needs a store with replicas"):
        _ = settings.embedded_durability


def test_secrets_are_never_printed() -> None:
    """Neither repr nor str of the settings shows a key, a token, or a password of the store or the archive."""
    settings = Settings(
        secret=(KEY,),
        store_url="valkey://user:p4ssword@store",
        archive_url="mysql://user:p4ssword@sql/fanline",
        metrics_token="t" * 16,
    )
    assert KEY not in repr(settings)
    assert "t" * 16 not in repr(settings)
    assert "p4ssword" not in repr(settings)


def test_the_archive_is_a_file_in_the_data_folder_by_default(tmp_path: Path) -> None:
    """This holds for any folder name."""
    folder = tmp_path / "what? #1 100% ü"
    url = Settings(data_dir=folder).archive
    assert Archive(url).database.url.database == str(folder / "archive.sqlite")
    assert not folder.exists()


def test_a_key_is_made_once_for_a_data_folder(tmp_path: Path) -> None:
    """The key is long, only its owner can read it, and later starts use the same key."""
    settings = Settings(data_dir=tmp_path / "new")
    (key,) = settings.keys()
    assert len(key) >= 32
    assert stat.S_IMODE(os.stat(tmp_path / "new" / "secret").st_mode) == 0o600
    assert Settings(data_dir=tmp_path / "new").keys() == (key,)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["secret"]


def test_processes_that_start_at_once_get_the_same_key(tmp_path: Path) -> None:
    """The first process creates the key, and none reads an incomplete key."""
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: Settings(data_dir=tmp_path).keys(), range(64)))
    assert len(set(found)) == 1


def test_the_file_of_keys_can_hold_several_for_rotation(tmp_path: Path) -> None:
    """The key on the first line signs; all keys verify."""
    (tmp_path / "secret").write_text(f"{KEY}new\n{KEY}old\n")
    assert Settings(data_dir=tmp_path).keys() == (f"{KEY}new", f"{KEY}old")


def test_keys_can_come_from_a_file(tmp_path: Path) -> None:
    """Systemd and container platforms provide such files. Production accepts the file instead of FANLINE_SECRET."""
    (tmp_path / "keys").write_text(f"{KEY}new\n{KEY}old\n")
    settings = Settings.load({"FANLINE_ENV": "production", "FANLINE_SECRET_FILE": str(tmp_path / "keys")})
    assert settings.keys() == (f"{KEY}new", f"{KEY}old")


def test_a_missing_file_of_keys_is_not_created(tmp_path: Path) -> None:
    """A new key would end every session."""
    with pytest.raises(SettingsError, match="cannot be read"):
        Settings(secret_file=tmp_path / "keys").keys()
    assert not (tmp_path / "keys").exists()


def test_a_data_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """The message also names the setting. The folder may be read-only, or may be a file."""
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"The data folder .*file cannot be used: .* FANLINE_DATA_DIR sets it"):
        Settings(data_dir=tmp_path / "file").keys()


def test_the_secret_has_one_source(tmp_path: Path) -> None:
    """Otherwise it is unclear which keys apply."""
    with pytest.raises(SettingsError, match="Set FANLINE_SECRET or FANLINE_SECRET_FILE, not both"):
        Settings.load({"FANLINE_SECRET": KEY, "FANLINE_SECRET_FILE": str(tmp_path / "keys")})


@pytest.mark.parametrize("content", ["", "short\n", "schlüssel" * 9])
def test_a_spoilt_file_of_keys_is_reported(tmp_path: Path, content: str) -> None:
    """It is not replaced silently: that would end every session."""
    (tmp_path / "secret").write_text(content)
    with pytest.raises(SettingsError, match="secret"):
        Settings(data_dir=tmp_path).keys()


@pytest.mark.parametrize(
    ("given", "url", "values"),
    [
        (None, "redis://localhost", NEAR_CACHE),
        (None, "redis+cluster://one:7001,two:7001", 0),
        (0, "redis://localhost", 0),
        (500, "redis+cluster://one:7001,two:7001", 500),
    ],
)
def test_the_near_cache_is_on_by_default_with_a_single_store(
    tmp_path: Path, given: int | None, url: str, values: int
) -> None:
    assert near_cache_of(Settings(data_dir=tmp_path, secret=(KEY,), near_cache=given), url) == values
