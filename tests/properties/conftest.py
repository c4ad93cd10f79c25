"""Settings of the property tests: assertions in helper modules show the values that they compare."""

import pytest

pytest.register_assert_rewrite(
    "tests.properties.rest",
    "tests.properties.model",
    "tests.properties.journal",
    "tests.properties.lists",
    "tests.properties.notifications",
    "tests.properties.suspensions",
)
