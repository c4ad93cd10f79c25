"""The reference of the command line, from the declarations of `server.cli.main`."""

import inspect
from pathlib import Path
from typing import TypeAlias

import typer.main
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from scripts.docs.tables import markdown
from server.cli.main import cli

Parameter: TypeAlias = TyperOption | TyperArgument


def reference() -> str:
    """Return a section for each command: its purpose, its usage, and a table of its arguments and options."""
    group = typer.main.get_command(cli)
    assert isinstance(group, TyperGroup)  # noqa: S101 - for mypy: the command line has commands
    return "\n".join(
        section(name, command) for name, command in group.commands.items() if isinstance(command, TyperCommand)
    )


def section(name: str, command: TyperCommand) -> str:
    """Return the section of a command."""
    parameters = [each for each in command.params if isinstance(each, Parameter) and each.name != "help"]
    usage = " ".join(["fanline", name, *map(usage_of, parameters)])
    text = inspect.cleandoc(command.help or "")
    rows = [(f"`{spelled(each)}`", default_of(each), getattr(each, "help", "") or "") for each in parameters]
    table = markdown(("argument or option", "default", "meaning"), rows) if rows else ""
    return f"## fanline {name}\n\n{text}\n\n```text\n{usage}\n```\n\n{table}"


def spelled(parameter: Parameter) -> str:
    """Return how a parameter is written: an argument as its placeholder, an option as its name and placeholder."""
    if isinstance(parameter, TyperArgument):
        return placeholder(parameter)
    name = next(each for each in parameter.opts if each.startswith("--"))
    return name if parameter.is_flag else f"{name} {placeholder(parameter)}"


def placeholder(parameter: Parameter) -> str:
    """Return the word that stands for a parameter's value in the usage."""
    if parameter.metavar:
        return parameter.metavar
    word = (parameter.name or "").upper()
    if isinstance(parameter, TyperArgument):
        return word
    return {int: "N", Path: "PATH"}.get(parameter.type_descriptor.annotation, word)


def usage_of(parameter: Parameter) -> str:
    """Return a parameter as the usage shows it: in brackets unless it is required."""
    return spelled(parameter) if parameter.required else f"[{spelled(parameter)}]"


def default_of(parameter: Parameter) -> str:
    """Return the default of a parameter; an empty string for flags and required parameters."""
    default = parameter.default
    return "" if default in (None, False, ()) or parameter.required else f"`{default}`"
