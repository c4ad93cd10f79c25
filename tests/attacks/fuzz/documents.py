"""Documents of the real schema, valid and invalid."""

import re
from typing import Any

from graphql import GraphQLObjectType, GraphQLSchema

from schema import schema
from tests.attacks.fuzz.values import ODD_TEXTS, odd
from tests.attacks.world import World
from tests.executor.differential.documents import DocumentWriter, GeneratedDocument
from tests.executor.differential.tapes import Tape

REAL = schema._schema
HASHING = ("signUp", "logIn", "logOut")  # hashing costs too much here, and the tests need their tokens
ROOTS = ("Query", "Mutation", "Subscription")
TOKENS = re.compile(r"[A-Za-z_]\w*|\d+|\"[^\"]*\"|\.\.\.|\s+|.", re.DOTALL)
PUNCTUATION = (
    "{", "}", "(", ")", "[", "]", ":", "$", "!", "=", "@", "...", "|", "&", '"', '"""', "#", ",", "\ufeff", "\0",
)  # fmt: skip
WORDS = (
    "query", "mutation", "subscription", "fragment", "on", "true", "null", "input", "extend", "schema", "__schema",
    "__type", "__typename", "viewer", "nodes", "first", "@include(if: true)", "@skip(if: false)", "@defer", "@oneOf",
    "@stream(initialCount: 0)", "1e999", "-0", "0x1F", "9" * 40, "9" * 5_000, "1." + "9" * 5_000, "é", "…", "𝄞",
    "a" * 2_000,
)  # fmt: skip
WANTED = {"first": 90, "last": 6, "after": 15, "before": 6}


def trimmed(root: GraphQLObjectType | None) -> GraphQLObjectType:
    """Return a root type without the fields that hash passwords or end sessions."""
    assert root is not None
    return GraphQLObjectType(root.name, {name: field for name, field in root.fields.items() if name not in HASHING})


TYPES = [each for name, each in REAL.type_map.items() if not name.startswith("__") and name not in ROOTS]
READING = GraphQLSchema(REAL.query_type, trimmed(REAL.mutation_type), types=TYPES)
EVENTS = GraphQLSchema(REAL.subscription_type, types=TYPES)


class Writer:
    """Generates documents about a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def preferred(self, name: str, type_: Any, tape: Tape) -> Any:
        """Return an argument that is very likely to be valid in this world, or None."""
        world = self._world
        match name:
            case "id" | "authorId" | "postId":
                return tape.pick((*world.users[:8], world.timeline, *world.posts, "nonsense"))
            case "timelineId":
                return tape.pick((world.timeline, *world.users[:2], "nonsense"))
            case "ids" | "userIds" | "users":
                return [tape.pick((*world.users[:8], world.timeline, "nonsense")) for _ in range(1 + tape.below(3))]
            case "by":
                return tape.pick(
                    ({"login": tape.pick(world.logins)}, {"id": tape.pick(world.users)}, {"login": "nobody"})
                )
            case "first" | "last":
                return tape.pick((1, 3, 20, 100, 0, 101))
            case "limit":
                return tape.pick((1, 3, 10, 20, 0, 21))
            case "keywords":
                return [tape.pick(("hello", "#tag", "北京", "a b c", "", "x" * 70)) for _ in range(1 + tape.below(3))]
            case "since" | "until":
                return tape.pick(("2020-01-01T00:00:00Z", "2100-01-01T00:00:00.5+01:00", "2026-02-30T00:00:00Z", "now"))
            case "within":
                return {
                    "south": 1,
                    "west": tape.pick((170, 1)),
                    "north": tape.pick((2, 0, 91)),
                    "east": tape.pick((-170, 2)),
                }
        return None

    def valid(self, tape: Tape) -> GeneratedDocument:
        """Return a query or a mutation that is valid, except perhaps for its arguments."""
        depth, fields = tape.pick((4, 2, 7, 9)), tape.pick((14, 4, 30, 60))
        return DocumentWriter(READING, tape, self.preferred, depth=depth, fields=fields, wanted=WANTED).write()

    def subscription(self, tape: Tape) -> GeneratedDocument:
        """Return a subscription."""
        written = DocumentWriter(
            EVENTS, tape, self.preferred, depth=3, fields=6, wanted={"after": 10, "filter": 100}
        ).write()
        text = re.sub(r"^(query\b|(?=\{))", "subscription ", written.text, count=1)
        return GeneratedDocument(text, written.operation_name, written.variables)

    def document(self, tape: Tape) -> GeneratedDocument:
        """Return a document that is valid, invalid, or expensive."""
        way = tape.below(100)
        if way >= 94:
            return GeneratedDocument(hard(tape), None, {"a": odd(tape)})
        written = self.subscription(tape) if way >= 84 else self.valid(tape)
        if way >= 55:
            return written
        text, variables = written.text, dict(written.variables)
        if way >= 15:
            text = mutated(text, tape)
        for name in list(variables):
            if way < 30 and tape.chance(50):
                variables[name] = odd(tape)
        return GeneratedDocument(text, written.operation_name, variables)


def mutated(text: str, tape: Tape) -> str:
    """Change a few tokens of a document."""
    tokens = TOKENS.findall(text)
    for _ in range(1 + tape.below(4)):
        at = (tape.below(256) << 8 | tape.below(256)) % max(1, len(tokens))
        match tape.below(7):
            case 0:
                del tokens[at : at + 1 + tape.below(3)]
            case 1:
                tokens[at:at] = [tape.pick(PUNCTUATION)]
            case 2:
                tokens[at : at + 1] = [tape.pick(WORDS)]
            case 3:
                tokens[at:at] = [f'"{tape.pick(ODD_TEXTS)}"']
            case 4:
                tokens[at:at] = tokens[at : at + 1 + tape.below(20)] * (1 + tape.below(6))
            case 5:
                other = tape.below(256) % max(1, len(tokens))
                if tokens:
                    tokens[at], tokens[other] = tokens[other], tokens[at]
            case _:
                tokens = tokens[:at]
    return "".join(tokens)


def hard(tape: Tape) -> str:
    """Return a document that is deep, long or repetitive."""
    count = tape.pick((10, 100, 1_000, 4_000))
    return tape.pick(
        (
            "{ viewer " + "{ timeline " * count + "{ id }" + " }" * count + " }",
            "{" * count,
            "[" * count,
            "{ a(b: " + "[" * count + "]" * count + ") }",
            "query ($a: " + "[" * count + "Int" + "]" * count + ") { viewer { id } }",
            "{ " + "viewer { id } " * count + "}",
            "query (" + " ".join(f"$v{at}: Int = 1" for at in range(count)) + ") { viewer { id } }",
            " ".join(f"fragment F{at} on User {{ ...F{(at + 1) % count} }}" for at in range(count))
            + " { viewer { user { ...F0 } } }",
            "{ ...F0 } "
            + " ".join(f"fragment F{at} on Query {{ ...F{at + 1} ...F{at + 1} }}" for at in range(min(count, 60))),
            "{ viewer { id " + "@include(if: true) " * count + "} }",
            "\n" * count + "{ viewer { user { nothing } } }",
            "#" + "é" * count + "\n{ viewer { id } }",
            '{ user(by: {login: """' + "\n " * count + '"""}) { id } }',
            "{ " + " ".join(f"nothing{at}" for at in range(count)) + " }",
            "{ user(by: {" + ", ".join(f"x{at}: 1" for at in range(count)) + "}) { id } }",
            " ".join(f"query Q{at} {{ viewer {{ id }} }}" for at in range(count)),
        )
    )
