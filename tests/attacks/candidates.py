"""Hand-written queries that cost as much as possible. Each one has pages of `$n` items.

In a template, `@100(text)` stands for 100 fields with different aliases, `$loud` for the argument that names the user
with the largest posts, and `$users100`, `$authors15` and `$timelines15` for lists of ids.
"""

import itertools
import json
import re
from collections.abc import Callable, Mapping

from tests.attacks.world import World

Candidate = Callable[[int], str]

AUTHORS = 21  # the first users of the world, who have the largest posts
ANONYMOUS = {
    "texts under 100 aliases": (
        "{ user($loud) { timeline { entries(first: $n) { nodes { ... on Post { @100(text) } } } } } }"
    ),
    "15 timelines of texts under 100 aliases": (
        "{ nodes(ids: $authors15) { ... on User { timeline { entries(first: $n) { nodes { "
        "... on Post { @100(text) } } } } } } }"
    ),
    "one timeline 15 times, texts under 100 aliases": (
        "{ nodes(ids: $timelines15) { ... on Timeline { entries(first: $n) { nodes { "
        "... on Post { @100(text) } } } } } }"
    ),
    "timelines of 100 users": (
        "{ nodes(ids: $users100) { ... on User { timeline { entries(first: $n) { nodes { "
        "... on Post { text } } } } } } }"
    ),
    "100 empty pages": (
        "{ nodes(ids: $users100) { ... on User { timeline { entries(first: $n) { pageInfo { hasNextPage } } } } } }"
    ),
    "posts with everything": (
        "{ nodes(ids: $authors20) { ... on User { timeline { liveCursor entries(first: $n) { pageInfo { startCursor "
        "endCursor hasNextPage } edges { cursor node { id createdAt author { id login name bio } "
        "... on Post { text platform location { latitude longitude } } } } } } } } }"
    ),
    "followers with everything": (
        "{ nodes(ids: $users100) { ... on User { followers(first: $n) { totalCount edges { cursor followedAt node { "
        "id login name bio avatarUrl websiteUrl joinedAt "
        "followersCount followingCount postsCount relationship { state } } } } } } }"
    ),
    "followers of followers": (
        "{ user($loud) { followers(first: 100) { nodes { login followers(first: $n) { nodes { login } } } } } }"
    ),
    "followers of followers of followers": (
        "{ user($loud) { followers(first: $n) { nodes { followers(first: $n) { nodes { followers(first: $n) { nodes { "
        "login } } } } } } } }"
    ),
    "posts of followers": (
        "{ user($loud) { followers(first: 100) { nodes { timeline { entries(first: $n) { nodes { author { bio } "
        "... on Post { text } } } } } } } }"
    ),
    "counts under 99 aliases": (
        "{ user($loud) { followers(first: $n) { nodes { @33(followersCount) @33(followingCount) @33(postsCount) } } } }"
    ),
    "counts of 100 users under 99 aliases": (
        "{ nodes(ids: $users100) { ... on User { @33(followersCount) @33(followingCount) @33(postsCount) } } }"
    ),
    "bios under 100 aliases": "{ user($loud) { followers(first: $n) { nodes { @100(bio) } } } }",
    "one user under 99 aliases": "{ @99(user($loud) { login name bio followersCount }) }",
    "authors of posts of authors": (
        "{ user($loud) { timeline { entries(first: $n) { nodes { author { timeline { entries(first: $n) { nodes { "
        "author { timeline { entries(first: $n) { nodes { id } } } } } } } } } } } } }"
    ),
    "typenames": "{ user($loud) { followers(first: $n) { nodes { @99(__typename) } } } }",
    "edges and cursors": (
        "{ nodes(ids: $users90) { ... on User { timeline { entries(first: $n) { edges { cursor node { id } } } } "
        "followers(first: $n) { edges { cursor } } } } }"
    ),
    "the oldest pages": (
        "{ nodes(ids: $users100) { ... on User { timeline { entries(last: $n) { nodes { id } } } followers(last: $n) { "
        "nodes { id } } } } }"
    ),
    "locations under 100 aliases": (
        "{ user($loud) { timeline { entries(first: $n) { nodes { "
        "... on Post { @100(location { latitude longitude }) } } } } } }"
    ),
    "dates under 100 aliases": "{ user($loud) { timeline { entries(first: $n) { nodes { @100(createdAt) } } } } }",
    "ids under 100 aliases": "{ user($loud) { timeline { entries(first: $n) { nodes { @100(id) } } } } }",
    "authors under 99 aliases": (
        "{ user($loud) { timeline { entries(first: $n) { nodes { @99(author { id login }) } } } } }"
    ),
    "pages under 50 aliases": (
        "{ user($loud) { timeline { @50(entries(first: $n) { nodes { ... on Post { text } } }) } } }"
    ),
    "followers under 50 aliases": "{ user($loud) { @50(followers(first: $n) { nodes { bio } }) } }",
    "page infos": "{ nodes(ids: $users100) { ... on User { @33(followers(first: $n) { pageInfo { endCursor } }) } } }",
    "total counts": "{ nodes(ids: $users100) { ... on User { @90(followers(first: $n) { totalCount }) } } }",
    "fragments that spread fragments": (
        "{ user($loud) { followers(first: $n) { nodes { ...F5 } } } } fragment F0 on User { login bio } "
        + " ".join(f"fragment F{at} on User {{ ...F{at - 1} ...F{at - 1} }}" for at in range(1, 6))
    ),
    "conditions": "{ user($loud) { followers(first: $n) { nodes { @95(bio @include(if: true)) } } } }",
    "inline fragments": "{ user($loud) { followers(first: $n) { nodes { " + "... on User { bio } " * 200 + "} } } }",
}
WITH_TOKEN = {
    "home timelines": (
        "{ viewer { homeTimeline { entries(first: $n) { nodes { author { login } ... on Post { @99(text) } } } } } }"
    ),
    "home timeline 40 times": (
        "{ viewer { @40(homeTimeline { entries(first: $n) { nodes { author { bio } ... on Post { text } } } }) } }"
    ),
    "texts of posts and of what reposts show": (
        "{ viewer { homeTimeline { entries(first: $n) { nodes { ... on Post { @40(text) } "
        "... on Repost { post { @40(text) } } } } } } }"
    ),
    "relationships": (
        "{ nodes(ids: $users100) { ... on User { followers(first: $n) { nodes { relationship { id state following "
        "followedBy followingSince followedBySince } } } } } }"
    ),
    "relationships under 99 aliases": (
        "{ viewer { user { followers(first: $n) { nodes { @99(relationship { id state followingSince }) } } } } }"
    ),
}
LIST = re.compile(r"\$(users|authors|timelines)(\d+)")
ALIASED = re.compile(r"@(\d+)\(")


def aliased(text: str) -> str:
    """Replace the alias markers of a template with fields that have numbered aliases."""
    number = itertools.count()
    while found := ALIASED.search(text):
        end, depth = found.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        field = text[found.end() : end - 1]
        fields = " ".join(f"a{next(number)}: {field}" for _ in range(int(found[1])))
        text = text[: found.start()] + fields + text[end:]
    return text


def filled(template: str, world: World) -> Candidate:
    """Return the query of a template."""
    pools = {"users": world.users, "authors": world.users[:AUTHORS], "timelines": (world.timeline,)}

    def ids(found: re.Match[str]) -> str:
        return json.dumps(list(itertools.islice(itertools.cycle(pools[found[1]]), int(found[2]))))

    text = aliased(LIST.sub(ids, template).replace("$loud", f'by: {{id: "{world.loud}"}}'))
    return lambda n: text.replace("$n", str(n))


def candidates(world: World, *, token: bool = False) -> Mapping[str, Candidate]:
    """Return the queries by name: those for anonymous clients, or all of them for clients with a token."""
    return {name: filled(text, world) for name, text in (ANONYMOUS | (WITH_TOKEN if token else {})).items()}
