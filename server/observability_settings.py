"""The settings of observability: logs, metrics, explanations and traces."""

import re
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, field_validator

from server.setting_values import LogFormat, Share

TOKEN_CHARACTERS = 16


class ObservabilitySettings(BaseModel):
    """The settings whose effects only operators and developers notice. `server.settings.Settings` extends them."""

    metrics_token: str | None = Field(
        default=None,
        repr=False,
        description="The bearer token that `/metrics` requires. If not set, `/metrics` is not served in production.",
    )
    log_format: LogFormat = Field(
        default=LogFormat.TEXT, description="Format of log records: `text`, or `json` with one object per line."
    )
    explain: bool | None = Field(
        default=None,
        description="Whether clients may request an explanation of an operation and its cost. Default: enabled except "
        "in production.",
    )
    trace_endpoint: str | None = Field(
        default=None,
        repr=False,
        description="The URL to which traces are sent, by OTLP over HTTP. Requires the extra `otel`.",
    )
    trace_share: Share = Field(default=0.01, description="Fraction of the queries and mutations that are traced.")

    @field_validator("metrics_token", mode="after")
    @classmethod
    def _long_token(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(rf"[!-~]{{{TOKEN_CHARACTERS},}}", value):
            raise ValueError(
                f"must have {TOKEN_CHARACTERS} ASCII characters or more; create one with `openssl rand -hex 32`"
            )
        return value

    @field_validator("trace_endpoint", mode="after")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        if value is not None:
            url = urlsplit(value)
            if url.scheme not in ("http", "https") or not url.hostname:
                raise ValueError("must be a URL such as http://localhost:4318/v1/traces")
            if "@" in url.netloc:
                raise ValueError("must not contain a password; set OTEL_EXPORTER_OTLP_HEADERS instead")
        return value
