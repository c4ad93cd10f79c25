"""Documents of screens with a fragment for each component, as relay-compiler prints them, are within the limits."""

import pytest

from schema import schema
from server.operations.cost import OperationLimits
from server.operations.documents import TOO_COMPLEX, DocumentCache, DocumentRefused
from server.operations.parsing import DocumentLimits

COMPONENTS = 40
CHAIN = 8  # components that contain one another
USER = "__typename id login name bio followersCount followingCount relationship { id state }"
SCREEN = """query Screen($first: Int!) { viewer { user { %(tops)s }
  homeTimeline { liveCursor(first: $first) entries(first: $first) {
    edges { cursor node { id createdAt author { %(tops)s } ... on Post { text } } }
    pageInfo { hasNextPage endCursor } } } } }"""


def screen() -> str:
    """Return a screen that shows forty components of users in two places, in five chains of eight."""
    tops = " ".join(f"...C{number}" for number in range(0, COMPONENTS, CHAIN))
    inner = [f"...C{number + 1}" if (number + 1) % CHAIN else "" for number in range(COMPONENTS)]
    fragments = [f"fragment C{number} on User {{ {USER} {inner[number]} }}" for number in range(COMPONENTS)]
    return "\n".join([SCREEN % {"tops": tops}, *fragments])


def test_a_screen_of_forty_components_is_within_the_limits() -> None:
    """It is within the limits of documents and of costs, for thirty posts."""
    prepared = DocumentCache(schema._schema, DocumentLimits(), introspection=False).prepare(screen())
    assert prepared.operation("Screen", {"first": 30}, OperationLimits())


@pytest.mark.parametrize(
    ("limits", "length"), [(DocumentLimits(), 230), (DocumentLimits(tokens=20_000, selections=20_000), 1_500)]
)
def test_a_long_chain_of_fragments_is_refused_with_advice(limits: DocumentLimits, length: int) -> None:
    """This also holds if the limits are so high that Python's stack would overflow first."""
    chain = " ".join(f"fragment F{number} on User {{ ...F{number + 1} }}" for number in range(length))
    document = f"{{ viewer {{ user {{ ...F0 }} }} }} {chain} fragment F{length} on User {{ id }}"
    with pytest.raises(DocumentRefused) as refused:
        DocumentCache(schema._schema, limits, introspection=False).prepare(document)
    assert refused.value.errors[0].message == TOO_COMPLEX
