"""Attachments: which ones are accepted, and how posts store them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.log.events import PostPublished
from graph.posts.attachments import (
    MAX_ALT,
    MAX_ATTACHMENTS,
    MAX_SIDE,
    Attachment,
    ImageAttachment,
    VideoAttachment,
    checked,
    decoded,
    encoded,
)
from graph.text.validation import Check
from graph.text.web_urls import MAX_URL, authority_of, normal_authority, normal_url
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import Open, archive_log, people

HOSTS = frozenset({"media.example.org", "cdn.example.org:8443"})
URL = "https://media.example.org/a.jpg"


def picture(url: str = URL, **values: Any) -> Attachment:
    return ImageAttachment(url, **values)


def problems(*attachments: Attachment, hosts: frozenset[str] = HOSTS) -> list[tuple[ProblemCode, tuple[str, ...]]]:
    """Return the codes and fields of the problems of attachments."""
    check = Check()
    checked(check, attachments, hosts)
    return [(problem.code, problem.field) for problem in check.problems]


async def test_attachments_are_kept_in_the_record_and_in_the_archive(another: Open) -> None:
    """Attachments are normalised, and empty fields are left out."""
    graph = await another(media_hosts=HOSTS, hot_posts=1, hot_slack=0)
    [alice] = await people(graph, "alice")
    video = VideoAttachment("https://CDN.example.org:8443/v", URL, 640, 480, " cafe\u0301 ", True)
    post = await graph.posts.publish(alice, "hi", attachments=[picture("HTTPS://media.EXAMPLE.org/A?b=C"), video])
    alone = await graph.posts.publish(alice, attachments=[picture()])

    objects = (
        {"kind": "IMAGE", "url": "https://media.example.org/A?b=C"},
        {
            "kind": "VIDEO",
            "url": "https://cdn.example.org:8443/v",
            "preview_url": URL,
            "width": 640,
            "height": 480,
            "alt": "café",
            "sensitive": True,
        },
    )
    assert post.attachments == objects
    event = await graph.log.get(post.id)
    assert event is not None
    assert isinstance(event.body, PostPublished)
    assert event.body.attachments == objects
    assert (alone.text, alone.attachments) == ("", ({"kind": "IMAGE", "url": URL},))
    assert await graph.posts.get_many(SYSTEM, [post.id, alone.id]) == [post, alone]
    await graph.worker().drain()
    await archive_log(graph)
    assert await graph.posts.get_many(SYSTEM, [post.id, alone.id]) == [post, alone]


async def test_without_attachments_the_text_must_not_be_empty(another: Open) -> None:
    """An invalid attachment is the only problem of a post without text."""
    graph = await another(media_hosts=HOSTS)
    [alice] = await people(graph, "alice")
    last = await graph.log.last()
    for text, attachments, code in (
        ("", [], ProblemCode.TEXT_EMPTY),
        (" \n", [], ProblemCode.TEXT_EMPTY),
        (" ", [picture("https://evil.example/a")], ProblemCode.INVALID),
        ("hi", [picture()] * 5, ProblemCode.TOO_MANY),
    ):
        with pytest.raises(Rejected) as rejection:
            await graph.posts.publish(alice, text, attachments=attachments)
        assert [problem.code for problem in rejection.value.problems] == [code]
    assert await graph.log.last() == last


async def test_an_idempotency_key_belongs_to_the_attachments_too(another: Open) -> None:
    graph = await another(media_hosts=HOSTS)
    [alice] = await people(graph, "alice")
    first = await graph.posts.publish(alice, "hi", attachments=[picture()], idempotency_key="k")
    again = await graph.posts.publish(alice, "hi", attachments=[picture()], idempotency_key="k")
    assert again == first
    for other in ([], [picture(alt="other")]):
        with pytest.raises(Rejected) as rejection:
            await graph.posts.publish(alice, "hi", attachments=other, idempotency_key="k")
        assert [problem.code for problem in rejection.value.problems] == [ProblemCode.IDEMPOTENCY_MISMATCH]


async def test_a_server_without_media_hosts_accepts_no_attachments(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    with pytest.raises(Rejected, match="accepts no attachments"):
        await graph.posts.publish(alice, "hi", attachments=[picture()])


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "http://media.example.org/a",
        "//media.example.org/a",
        "ftp://media.example.org/a",
        "javascript://media.example.org/%0aalert(1)",
        "data:image/png;base64,AAAA",
        "https://evil.example/a",
        "https://evil.example/https://media.example.org/a",
        "https://evil.example?https://media.example.org",
        "https://evil.example#@media.example.org/",
        "https://media.example.org@evil.example/",
        "https://user:password@media.example.org/",
        "https://evil.example\\@media.example.org/",
        "https://media.example.org\\.evil.example/",
        "https:\\\\media.example.org/",
        "https:/media.example.org/",
        "https:///media.example.org/",
        "https://media.example.org.evil.example/",
        "https://sub.media.example.org/",
        "https://media.example.org./a",
        "https://media.example.org:8443/a",
        "https://media.example.org:443/a",
        "https://media.example.org:/a",
        "https://cdn.example.org/a",
        "https://cdn.example.org:08443/a",
        "https://media。example。org/a",
        "https://ｍedia.example.org/a",
        "https://medıa.example.org/a",
        "https://media.example.org/ä",
        "https://media.example.org/a b",
        "https://media.example.org/a\nb",
        "https://media.example.org/a\tb",
        "https://media.ex\nample.org/a",
        "https://media.example.org/\x00",
        "https://media.example.org/\u202e",
        'https://media.example.org/"onerror="',
        "https://media.example.org/<a>",
        "https://media.example.org/%zz",
        "https://[::1]/a",
        "https://127.0.0.1/a",
        "https://2130706433/a",
        "https://localhost/a",
        URL + "a" * MAX_URL,
        "\ud800",
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    """The URL has another host, or programs may find another host in it. The field names the attachment."""
    assert problems(picture(), picture(url)) == [(ProblemCode.INVALID, ("attachments", "1", "url"))]
    assert problems(picture(preview_url=url)) == [(ProblemCode.INVALID, ("attachments", "0", "previewUrl"))]


@pytest.mark.parametrize(
    "url",
    [
        URL,
        f" {URL} ",
        "HTTPS://MEDIA.EXAMPLE.ORG",
        "https://cdn.example.org:8443/?a#b",
        "https://media.example.org/@x/%C3%A4;(1)",
        URL + "a" * (MAX_URL - len(URL)),
    ],
)
def test_urls_that_are_accepted(url: str) -> None:
    assert problems(picture(url, preview_url=url)) == []


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({"width": 1, "height": MAX_SIDE}, []),
        ({"width": 0, "height": 1}, ["width"]),
        ({"width": 1, "height": MAX_SIDE + 1}, ["height"]),
        ({"width": -1, "height": -1}, ["width", "height"]),
        ({"width": 1}, ["height"]),
        ({"height": 1}, ["width"]),
        ({"alt": "a" * MAX_ALT}, []),
        ({"alt": "a" * (MAX_ALT + 1)}, ["alt"]),
        ({"alt": "a\x00"}, ["alt"]),
        ({"alt": "\ud800"}, ["alt"]),
        ({"alt": "a" + "\u0301" * 40}, ["alt"]),
    ],
)
def test_sizes_and_alternative_texts(values: dict[str, Any], fields: list[str]) -> None:
    expected = [(ProblemCode.INVALID, ("attachments", "0", field)) for field in fields]
    assert problems(picture(**values)) == expected


def test_more_than_four_are_too_many() -> None:
    """The attachments themselves are not checked."""
    assert problems(*[picture()] * MAX_ATTACHMENTS) == []
    assert problems(*[picture("x")] * (MAX_ATTACHMENTS + 1)) == [(ProblemCode.TOO_MANY, ("attachments",))]


def test_attachments_of_later_versions() -> None:
    """Unknown fields are ignored, and unknown kinds and damaged objects are left out."""
    objects: list[dict[str, Any]] = [
        {"kind": "IMAGE", "url": URL, "new": 1},
        {"kind": "AUDIO", "url": URL},
        {},
        {"kind": "IMAGE"},
    ]
    assert decoded(objects) == [picture()]


sides = st.none() | st.integers(1, MAX_SIDE)
fields = (st.just(URL), st.none() | st.just(URL), sides, sides, st.text(), st.booleans())
attachments = st.builds(ImageAttachment, *fields) | st.builds(VideoAttachment, *fields)


@given(st.lists(attachments, max_size=4))
def test_encoding_and_decoding(given: list[Attachment]) -> None:
    assert decoded(encoded(given)) == given


@given(st.text(alphabet="htps:/.@\\ #?%aA0:-é\n", max_size=30) | st.text(max_size=10))
def test_the_authority_of_a_url_is_before_its_path(rest: str) -> None:
    """An accepted URL has only the compared host, followed only by a character of a path."""
    for text in (f"https://{rest}", f"https://media.example.org{rest}"):
        url = normal_url(text)
        if url is not None:
            authority = authority_of(url)
            assert url.startswith(f"https://{authority}")
            assert url[8 + len(authority) :][:1] in ("", "/", "?", "#")
            assert not set(authority) & set("@\\ \n")
            assert normal_authority(authority) == authority


@pytest.mark.parametrize("text", ["", "a", "a.example/", "a.example?", "https://a.example", "*.a.example", "a.b:0"])
def test_what_is_no_host(text: str) -> None:
    assert normal_authority(text) is None
