"""Redaction of GraphQL error messages: the values that they quote may be passwords.

Front ends log responses and send them in error reports. The path and location of an error still identify the value.
"""

import re

QUOTING = re.compile(
    r"""
      (?P<kept> Expected\ value\ of\ type\ .*? ),\ found:\ .*
    | (?P<scalar> cannot\ represent\ [^:]{0,60}value ):\ .*
    | (?P<token> Syntax\ Error:\ .*? (?:Unexpected|found)\ (?:Name|String|BlockString|Int|Float) )\ ['"].*
    """,
    re.DOTALL | re.VERBOSE,
)


def without_values(message: str) -> str:
    """Return a GraphQL validation message without the value quoted at its end."""
    found = QUOTING.search(message)
    return message if found is None else f"{message[: found.start()]}{found[found.lastgroup or 0]}."
