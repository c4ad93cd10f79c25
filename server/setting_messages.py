"""The messages about invalid settings."""

from collections.abc import Iterator

from pydantic import ValidationError

WORDING = {
    "bool_parsing": "must be true or false",
    "enum": "must be {expected}",
    "float_parsing": "must be a number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of at most 15 digits",
    "less_than_equal": "must be at most {le}",
}
CONTINUES = ("must ", "has ", "is ")  # messages whose subject is the name of the setting


def sentences(error: ValidationError, prefix: str) -> Iterator[str]:
    """Yield a sentence for each invalid setting. The names of settings begin with `prefix`."""
    for problem in error.errors(include_url=False, include_input=False):
        wording = WORDING.get(problem["type"])
        message = wording.format(**problem.get("ctx", {})) if wording else problem["msg"].removeprefix("Value error, ")
        name = f"{prefix}{str(problem['loc'][0]).upper()}" if problem["loc"] else ""
        separator = "" if not name else " " if message.startswith(CONTINUES) else ": "
        yield f"{name}{separator}{message.removesuffix('.')}."
