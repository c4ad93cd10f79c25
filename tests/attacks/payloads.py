"""Payloads of attacks: documents, texts, headers, filters and invalid requests, for tests and `benchmarks.attacks`."""

import secrets
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.live_clients import HANDSHAKE
from resolvers import ids
from tests.attacks.candidates import aliased
from tests.attacks.clients import request, streamed
from tests.attacks.victim import PLAIN
from tests.attacks.world import World

NODES = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
EVENTS = 'subscription { events(filter: {keywords: ["nobody writes this"]}) { cursor } }'
LOG_IN = "mutation ($input: LogInInput!) { logIn(input: $input) { credentials { token } userErrors { code } } }"
SIGN_UP = (
    "mutation ($input: SignUpInput!) { signUp(input: $input) { credentials { token } userErrors { code field } } }"
)
# The time to normalise combining characters grows with the square of their number. These are 44 and 240 KB.
COMBINING = "a" + "\u0315" * 11_000 + "\u0300" * 11_000
LARGER = "a" + "\u0315" * 60_000 + "\u0300" * 60_000
ALICE = 'user(by: {login: "alice"})'
OVERLAPS = {
    "248 repeated fields": "{ " + "viewer { id } " * 248 + "}",
    "22 fields of 21 repeated fields": "{ " + f"{ALICE} {{ {'login ' * 21} }} " * 22 + "}",
    "repetition on three levels": "{ " + f"{ALICE} {{ {'login ' * 10} timeline {{ {'id kind ' * 10} }} }} " * 14 + "}",
    "repeated paths": "{ " + f"{ALICE} {{ timeline {{ entries(first: 1) {{ nodes {{ id }} }} }} }} " * 98 + "}",
    "repeated paths that conflict": "{ "
    + " ".join(f"{ALICE} {{ timeline {{ entries(first: {at}) {{ nodes {{ id }} }} }} }}" for at in range(98))
    + " }",
    "arguments that conflict": "{ " + " ".join(f'user(by: {{login: "u{at}"}}) {{ id }}' for at in range(220)) + " }",
    "leaves that conflict": f"{{ {ALICE} {{ {'x: login x: name ' * 50} }} }}",
    "fragments that overlap": f"{{ {ALICE} {{ {' '.join(f'...F{at}' for at in range(80))} }} }} "
    + " ".join(f"fragment F{at} on User {{ login name bio id }}" for at in range(80)),
    "fragments that conflict": f"{{ {ALICE} {{ {' '.join(f'...F{at}' for at in range(80))} }} }} "
    + " ".join(f"fragment F{at} on User {{ followers(first: {at}) {{ totalCount }} name }}" for at in range(80)),
    "fragments that spread fragments": f"{{ {ALICE} {{ ...F0 }} }} "
    + " ".join(f"fragment F{at} on User {{ ...F{at + 1} ...F{at + 2} login }}" for at in range(60))
    + " fragment F60 on User { id } fragment F61 on User { name }",
    "inline fragments": f"{{ {ALICE} {{ {'... on User { timeline { id } } ' * 160} }} }}",
}
LARGE = {  # documents of nearly as many tokens and selections as the limits allow
    "960 fields below two objects": f"{{ a: {ALICE} {{ {'login ' * 480} }} b: {ALICE} {{ {'login ' * 480} }} }}",
    "960 fields below three objects": "{ " + f"{ALICE} {{ {'login ' * 320} }} " * 3 + "}",
    "five fields 190 times": f"{{ a: {ALICE} {{ {'login name bio id postsCount ' * 190} }} }}",
    "320 objects": "{ " + "viewer { id __typename } " * 320 + "}",
    "95 objects under aliases": "{ " + " ".join(f"a{at}: {ALICE} {{ login name bio id }}" for at in range(95)) + " }",
    "a fragment below 90 objects": "{ " + " ".join(f"a{at}: {ALICE} {{ ...F }}" for at in range(90)) + " } "
    "fragment F on User { login name bio id postsCount followersCount avatarUrl joinedAt }",
    "190 fragments": f"{{ {ALICE} {{ {' '.join(f'...F{at}' for at in range(190))} }} }} "
    + " ".join(f"fragment F{at} on User {{ login }}" for at in range(190)),
    "a chain of fragments": f"{{ {ALICE} {{ ...F0 }} }} "
    + " ".join(f"fragment F{at} on User {{ ...F{at + 1} login }}" for at in range(180))
    + " fragment F180 on User { id }",
    "fragments of an interface": f'{{ node(id: "x") {{ {"... on User { login } ... on Post { text } " * 160} }} }}',
    "fragments of a union": "subscription { homeTimeline { "
    + "... on PostAdded { cursor } ... on Gap { cursor } " * 150
    + "} }",
    "fragments without a type": f"{{ {ALICE} {{ {'... { login } ' * 400} }} }}",
    "95 pages": f"{{ {ALICE} {{ "
    + " ".join(f"a{at}: followers(first: {at + 1}) {{ totalCount }}" for at in range(95))
    + " } }",
    "95 variables": f"query ({' '.join(f'$v{at}: String!' for at in range(95))}) {{ "
    + " ".join(f"a{at}: user(by: {{login: $v{at}}}) {{ id }}" for at in range(95))
    + " }",
    "480 unused variables": f"query ({' '.join(f'$v{at}: Int' for at in range(480))}) {{ viewer {{ id }} }}",
    "240 operations": " ".join(f"query Q{at} {{ viewer {{ id }} }}" for at in range(240)),
    "95 directives": f"{{ {ALICE} {{ {'login @include(if: true) ' * 95} }} }}",
    "1,900 values": "{ nodes(ids: [" + '"x" ' * 1_900 + "]) { id } }",
    "600 unknown fields of an input": f"{{ user(by: {{{' '.join(f'x{at}: 1' for at in range(600))}}}) {{ id }} }}",
    "960 unknown fields": f"{{ a: {ALICE} {{ {' '.join(f'x{at}' for at in range(480))} }} }}",
    "one conflict among 960 fields": f"{{ a: {ALICE} {{ {'login ' * 950} login: name }} }}",
    "a long text": '{ user(by: {login: "' + "x" * 90_000 + '"}) { id } }',
    "a long comment": "#" + "x" * 90_000 + "\n{ viewer { id } }",
}
HEADS = {
    "accept": lambda size: request({"query": PLAIN}, headers=[("accept", "a/b;q=1," * (size // 8))]),
    "accept of one type": lambda size: request({"query": PLAIN}, headers=[("accept", "a/b" + ";q=1" * (size // 4))]),
    "authorization": lambda size: request({"query": PLAIN}, headers=[("authorization", "Bearer " + "x" * size)]),
    "many headers": lambda size: request(
        {"query": PLAIN}, headers=[(f"x-{at}", "y" * 90) for at in range(size // 100)]
    ),
    "one header many times": lambda size: request({"query": PLAIN}, headers=[("accept", "a/b")] * (size // 13)),
    "cookie": lambda size: request({"query": PLAIN}, headers=[("cookie", "a=b; " * (size // 5))]),
    "content type": lambda size: request(
        {"query": PLAIN}, headers=[("content-type", "application/json;a=b" * (size // 20))]
    ),
    "url": lambda size: request(method="GET", path="/graphql?" + "a=b&" * (size // 4)),
    "path": lambda size: request(method="GET", path="/" + "a/" * (size // 2)),
    "name of a header": lambda size: request({"query": PLAIN}, headers=[("x" * size, "y")]),
    "origin": lambda size: request({"query": PLAIN}, headers=[("origin", "http://" + "a." * (size // 2))]),
    "last event": lambda size: streamed(EVENTS, last_event_id="9" * size),
    "request id": lambda size: request({"query": PLAIN}, headers=[("x-request-id", "a" * size)]),
    "handshake": lambda size: HANDSHAKE.replace(
        b"\r\n\r\n", b"\r\nsec-websocket-protocol: " + b"a, " * (size // 3) + b"\r\n\r\n"
    ),
}
SELECTIONS = {
    "bios of followers": "follower { followers(first: $n) { nodes { @5(bio) } } }",
    "texts": "follower { timeline { entries(first: $n) { nodes { ... on Post { @3(text) } } } } }",
    "followers of followers": "followee { followers(first: $n) { nodes { followers(first: $n) { nodes { bio } } } } }",
    "counts": "followee { @20(followersCount) followers(first: $n) { totalCount } }",
    "pages under aliases": "followee { @3(followers(first: $n) { nodes { bio } }) }",
}
FOLLOW = """mutation ($ids: [ID!]!) {
  unfollowUsers(input: {userIds: $ids}) { results { outcome } }
  followUsers(input: {userIds: $ids}) { results { outcome } }
}"""


def filter_by_users(world: World, at: int) -> dict[str, list[str]]:
    """Return a filter of thousands of users, nearly all of whom do not exist."""
    return {
        "users": [world.users[0], *ids.encode_all(ids.Kind.USER, range(10**9 * (1 + at), 10**9 * (1 + at) + 2_500))]
    }


def filter_by_keywords(world: World, at: int) -> dict[str, list[str]]:
    """Return a filter of thousands of words."""
    return {"keywords": [" ".join(f"w{at}x{index}x{word}" for word in range(25)) for index in range(79)]}


FILTERS: dict[str, Callable[[World, int], Any]] = {"users": filter_by_users, "keywords": filter_by_keywords}


def invalid_requests(count: int) -> Iterator[bytes]:
    """Yield different invalid requests."""
    for at in range(count):
        salt = secrets.token_hex(4)
        yield (
            request({"query": f"{{ nothing{salt} }}"}),
            request({"query": f"{{ {salt} "}),
            request(f"{{not json {salt}".encode()),
            request({"query": f"query ($a{salt}: Nothing) {{ viewer {{ id }} }}"}),
            request({"query": PLAIN}, headers=[("authorization", f"Bearer {salt}")]),
            request({"query": f"query ($id: ID!) {{ node(id: $id) {{ id }} }} #{salt}", "variables": {"id": salt}}),
            request(method="GET", path=f"/graphql?query={salt}"),
            request(method="PUT", path="/graphql"),
            request(method="GET", path=f"/{salt}"),
            f"GET /graphql HTTP/1.1\r\nhost: {salt}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n".encode(),
            f"{salt}\r\n\r\n".encode(),
        )[at % 11]


def follow_stream(world: World, selection: str, size: int) -> str:
    """Return a subscription to the follows of the user with the largest posts."""
    selection = aliased(selection.replace("$n", str(size)))
    kinds = f"... on UserFollowed {{ {selection} }} ... on UserUnfollowed {{ {selection} }}"
    return f'subscription {{ events(filter: {{users: ["{world.loud}"]}}) {{ __typename cursor {kinds} }} }}'
