"""The settings of rate limits and quotas: how much of a process one viewer or address may use."""

from pydantic import BaseModel, Field

from server.setting_values import Count


class RateSettings(BaseModel):
    """The settings that share a process among its clients. `server.settings.Settings` extends them."""

    rate_limits: bool | None = Field(
        default=None,
        description="Whether the rates of viewers and addresses are limited. Default: only in production.",
    )
    points_per_minute: Count = Field(
        default=60_000, description="With rate limits: maximum points of a viewer or anonymous address per minute."
    )
    writes_per_minute: Count = Field(
        default=60,
        description="With rate limits: maximum writes of a viewer per minute; each followed user and each member of a "
        "list counts as one.",
    )
    log_ins_per_minute: Count = Field(
        default=10, description="With rate limits: maximum log-ins from an address per minute."
    )
    sign_ups_per_hour: Count = Field(
        default=5, description="With rate limits: maximum sign-ups from an address per hour."
    )
    operations_at_once: Count = Field(
        default=4, description="With rate limits: maximum concurrent operations of a viewer or address in a process."
    )
    max_anonymous_streams: Count = Field(
        default=20, description="With rate limits: maximum subscriptions of an anonymous address in a process."
    )
    max_streams: Count = Field(
        default=1000,
        description="Maximum subscriptions of a viewer or anonymous address in a process, across all transports.",
    )
    max_streams_per_field: Count = Field(
        default=20,
        description="Maximum subscriptions to one field, such as `notifications`, of a viewer or anonymous address in "
        "a process.",
    )
    event_points_per_minute: Count = Field(
        default=300_000,
        description="With rate limits: maximum points of a viewer's events in a process per minute. Further events "
        "wait.",
    )
    max_filter_terms: Count = Field(
        default=50_000,
        description="Maximum terms in the event filters of a viewer in a process; an anonymous address may use a "
        "hundredth.",
    )
    max_connections: Count = Field(
        default=100, description="With rate limits: maximum connections from an address in a process."
    )
