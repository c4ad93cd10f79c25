"""Texts that users really type, from standards and bug reports: `inputs.json`, with positions in UTF-16 code units.

Each row has the entities of a text and the source of the rule. The rows define what is highlighted, who is notified,
and what searches and filters find, which must agree.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from graph.posts.mentions import logins_in
from graph.text.entities import MAX_TAG, Hashtag, Link, Mention, entities_of
from graph.text.terms import keyword_of, terms_of

INPUTS = json.loads(Path(__file__).with_name("inputs.json").read_text("utf-8"))
KINDS = {Hashtag: "hashtag", Link: "link", Mention: "mention"}


@pytest.mark.parametrize("given", INPUTS, ids=lambda given: given["text"].encode("unicode_escape").decode()[:60])
def test_entities_mentions_and_tags_are_those_of_the_table(given: dict[str, Any]) -> None:
    text = given["text"]
    values = {Hashtag: "tag", Link: "url", Mention: "login"}
    found = [
        {"kind": KINDS[type(each)], "start": each.start, "end": each.end, "value": getattr(each, values[type(each)])}
        for each in entities_of(text)
    ]
    assert found == given["entities"], given["source"]

    expected = {kind: [each["value"] for each in found if each["kind"] == kind] for kind in KINDS.values()}
    assert logins_in(text) == list(dict.fromkeys(expected["mention"]))
    tags = {word for word in terms_of(text).words if word.startswith("#") and len(word) <= MAX_TAG + 1}
    assert tags == {f"#{tag}" for tag in expected["hashtag"]}
    for tag in expected["hashtag"]:
        assert terms_of(text).contain(keyword_of(f"#{tag}"))
