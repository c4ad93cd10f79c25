"""Texts that read like posts of a micro-blog, composed from phrases.

A language is a `Voice`: sentences with `{slots}` by topic, and the texts that fill the slots. `compose` picks a
sentence, fills it, and sometimes appends a mood, an emoji or a hashtag. The same random numbers give the same text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random

SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """One language: its sentences by topic, and the endings that can follow them.

    `gap` separates two sentences; `tags` are the hashtags of a topic.
    """

    gap: str
    sentences: Mapping[str, tuple[str, ...]]
    slots: Mapping[str, tuple[str, ...]]
    moods: tuple[str, ...]
    replies: tuple[str, ...]
    tags: Mapping[str, tuple[str, ...]]
    emoji: Mapping[str, str]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of this language."""
        return tuple(self.sentences)


def compose(voice: Voice, topic: str, random: Random) -> str:
    """Return a post about a topic: not empty, and much shorter than 1,000 characters."""
    text = fill(random.choice(voice.sentences[topic]), voice.slots, random)
    text = text[0].upper() + text[1:]
    if random.random() < 0.28:
        text += voice.gap + fill(random.choice(voice.moods), voice.slots, random)
    if random.random() < 0.35:
        text += " " + random.choice(voice.emoji[topic]) * random.choice((1, 1, 1, 2))
    if random.random() < 0.30:
        text += " " + random.choice(voice.tags[topic])
    return text


def reply(voice: Voice, login: str, random: Random) -> str:
    """Return a post that addresses another user by login."""
    return f"@{login} {fill(random.choice(voice.replies), voice.slots, random)}"


def fill(sentence: str, slots: Mapping[str, tuple[str, ...]], random: Random) -> str:
    """Replace each `{slot}` with one of the texts that fill it, which may contain further slots."""
    parts = parts_of(sentence)
    if len(parts) == 1:
        return sentence
    return "".join(
        fill(random.choice(slots[part]), slots, random) if place % 2 else part for place, part in enumerate(parts)
    )


@cache
def parts_of(sentence: str) -> list[str]:
    """Split a sentence into alternating text and slot names."""
    return SLOT.split(sentence)
