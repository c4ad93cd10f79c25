"""`fanline dead-letters`: list, retry or drop events and tasks that could not be processed."""

import sys
from collections.abc import Collection, Sequence
from functools import partial

import typer

from graph import Graph
from server.cli.messages import say
from server.cli.stores import existing_store_of, run
from server.settings import Settings


def handle(action: str, entries: Sequence[str], everything: bool) -> bool:
    """Run an action on the dead letters of these entries, or on all. Return False if any failed or did not exist.

    Raises SettingsError if there is no store. Raises typer.BadParameter for an unknown action, and if `retry` or `drop`
    is called with neither entries nor `everything`, or with both.
    """
    actions = {"list": show, "retry": retry, "drop": drop}
    if action not in actions:
        raise typer.BadParameter(f"{action!r} is not an action; the actions are: {', '.join(actions)}.")
    if action != "list" and bool(entries) is everything:
        raise typer.BadParameter(f"Name the entries to {action}, or use --all.")
    chosen = None if everything or not entries else frozenset(entries)
    settings = Settings.load()
    with existing_store_of(settings):
        return run(settings, partial(actions[action], entries=chosen))


async def show(graph: Graph, entries: Collection[str] | None) -> bool:
    """Print the dead letters of these entries, or all if `entries` is None, one per line. Return True."""
    count = 0
    async for letter in graph.dead_letters.all():
        if entries is None or letter.entry in entries:
            count += 1
            fields = {"entry": letter.entry, "reason": letter.reason, **letter.fields}
            line = "  ".join(f"{name}={value}" for name, value in fields.items())
            sys.stdout.write(line.encode(errors="backslashreplace").decode() + "\n")
    say(f"{number_of_letters(count)} could not be processed." if count else "There are no dead letters.")
    return True


async def retry(graph: Graph, entries: Collection[str] | None) -> bool:
    """Process dead letters again. Print those that failed or do not exist. Return True if all were processed."""
    done = failed = 0
    missing = set(entries or ())
    async for letter, problem in graph.redelivery().retry(entries):
        missing.discard(letter.entry)
        done, failed = (done, failed + 1) if problem else (done + 1, failed)
        if problem:
            say(f"{letter.entry}: {problem}")
    say(f"{number_of_letters(done)} processed" + (f", {failed:,} failed again." if failed else "."))
    return found_all(missing) and not failed


async def drop(graph: Graph, entries: Collection[str] | None) -> bool:
    """Remove dead letters. Print the entries without a dead letter. Return True if every entry had one."""
    letters = [letter async for letter in graph.dead_letters.all() if entries is None or letter.entry in entries]
    await graph.dead_letters.drop([letter.id for letter in letters])
    say(f"{number_of_letters(len(letters))} dropped.")
    return found_all({*(entries or ())} - {letter.entry for letter in letters})


def found_all(missing: Collection[str]) -> bool:
    """Print that the entries in `missing` have no dead letter. Return True if `missing` is empty."""
    for entry in sorted(missing):
        say(f"There is no dead letter for the entry {entry}. List them with `fanline dead-letters list`.")
    return not missing


def number_of_letters(count: int) -> str:
    """Return a count of dead letters as text, such as `3 events or tasks`."""
    return "1 event or task" if count == 1 else f"{count:,} events or tasks"
