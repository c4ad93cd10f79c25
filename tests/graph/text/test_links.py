"""Links in texts: where they begin and end, and what is not a link."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.text.links import links_in, without_addresses
from graph.text.terms import keyword_of, terms_of


def links(text: str) -> list[str]:
    return [text[start:end] for start, end in links_in(text)]


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("https://example.org", "https://example.org"),
        ("see http://example.org/a/b?c=d#e now", "http://example.org/a/b?c=d#e"),
        ("HTTPS://Example.ORG/A", "HTTPS://Example.ORG/A"),
        ("https://example.org:8443/a", "https://example.org:8443/a"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://192.0.2.1/x", "http://192.0.2.1/x"),
        ("https://xn--fsqu00a.xn--0zwm56d/%E4%BD%A0", "https://xn--fsqu00a.xn--0zwm56d/%E4%BD%A0"),
        ("(https://example.org/a)", "https://example.org/a"),
        ("(https://example.org/a_(b))", "https://example.org/a_(b)"),
        ("[https://example.org/]", "https://example.org/"),
        ("[a](https://example.org/)", "https://example.org/"),
        ("'https://example.org'?!", "https://example.org"),
        ('"https://example.org", he said', "https://example.org"),
        ("https://example.org/a...", "https://example.org/a"),
        ("https://example.org/a!)?", "https://example.org/a"),
        ("看https://t.cn/abc很好", "https://t.cn/abc"),
        ("看：https://t.cn/abc。", "https://t.cn/abc"),
        ("https://example.org/päth", "https://example.org/päth"),
        ("https://example.org\\@evil.example", "https://example.org"),
        ("https://example.org/\u202egpj.exe", "https://example.org/"),
        ("https://example.org/a@b", "https://example.org/a@b"),
    ],
)
def test_a_link_ends_before_the_punctuation_around_it(text: str, link: str) -> None:
    """It also ends before the first character that URLs cannot contain."""
    assert links(text) == [link]


@pytest.mark.parametrize(
    "text",
    [
        "example.org",
        "https://",
        "https:// example.org",
        "https:///example.org",
        "https://.",
        "https://?",
        "https://-a.example",
        "https://a..example",
        "https://example.org_/",
        "https://exam\u200bple.org",
        "https://example.org%2eevil.example",
        "https://😀.example",
        "http://localhost中文",
        "https://bank.example@evil.example",
        "https://user:password@evil.example/",
        "https://user:1@evil.example/",
        "https://[::1]/",
        "https://example.org:",
        "https://example.org:x/",
        "https://example.org:99999/",
        "https://" + "a" * 64 + ".example",
        "https://" + "a." * 150 + "example",
        "ftp://example.org",
        "javascript://example.org/%0aalert(1)",
        "xhttps://example.org",
        "1https://example.org",
        "ｈｔｔｐｓ：／／example.org",
        "mailto:a@b.example",
    ],
)
def test_what_is_no_link(text: str) -> None:
    """Among these are URLs whose host readers or programs may confuse with another one."""
    found = links(text)
    assert found == [] or text == found[0] + ":"


@given(st.text(alphabet="https://a.b@#?&()[]:1,é北。_* \u202e\u200b", max_size=60))
def test_links_are_replaced_by_spaces(text: str) -> None:
    """A text that consists of a link alone is parsed as the same link."""
    rest = without_addresses(text)
    assert len(rest) == len(text)
    places = links_in(text)
    assert [place for pair in places for place in pair] == sorted({place for pair in places for place in pair})
    for start, end in places:
        assert rest[start:end].isspace()
        assert links(text[start:end]) == [text[start:end]]
    assert all(new in (old, " ") for old, new in zip(text, rest, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "social.example/@bob",
        "example.org/#rain",
        "ftp://example.org/@bob",
        "https://bank.example@evil.example/@bob",
        "see:example.org?user=@bob",
    ],
)
def test_addresses_that_are_not_links_contain_nothing_else(text: str) -> None:
    assert links(text) == []
    assert not {"@bob", "#rain"} & {*without_addresses(text).split()}
    assert "@bob" not in without_addresses(text)


def test_links_have_words_but_no_hashtags() -> None:
    """A keyword with a link matches the texts with its words."""
    text = "https://example.org/#tag (#other)"
    assert terms_of(text).contain(keyword_of("tag example #other"))
    assert not terms_of(text).contain(keyword_of("#tag"))
    assert terms_of(text).contain(keyword_of("#other https://example.org/#tag"))


@pytest.mark.parametrize(
    "piece",
    [
        *("https://a:", "https://a.b", "https://a)", "https://((", "https://a]]]]", "://", "https://a-.", "https://"),
        *(
            "a.",
            "a.bc",
            "a.bc/",
            "a-",
            "https://é",
            "https://a。",
            "https://北.",
            "https://a.b/北",
            "é.北",
            "a:",
            "1.",
            "a+",
            "日.",
            "é.",
            "é．",
            "．\u0345\u0323",
        ),
    ],
)
def test_long_hostile_texts(piece: str) -> None:
    """The time is linear: with backtracking, the test would exceed its time limit."""
    text = (piece * 100_000)[:100_000]
    assert len(without_addresses(text)) == len(text)
