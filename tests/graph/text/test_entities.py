"""The entities of texts: mentions, hashtags and links with their positions."""

from dataclasses import replace

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from graph.text.entities import MAX_TAG, Entity, Hashtag, Link, Mention, entities_of
from graph.text.folding import fold
from graph.text.links import links_in
from graph.text.terms import keyword_of, terms_of
from tests.graph.text.typed import typed_texts

ALPHABET = (
    "aB1_ #．＃﹟@＠é\u0301ßİп北京カ゛ｶ\uff9e한ᄀ\u1161\u11a8ㄱㅏกำह\u093f\u200d\ufe0f😀𠮷-,、℀ﬁ㍿﷼\u0345\u037a:/.https"
)
texts = st.text(alphabet=ALPHABET, max_size=40) | st.text(max_size=20) | typed_texts


def part(text: str, entity: Entity) -> str:
    """Return the part of a text at an entity, as a client in JavaScript cuts it out."""
    return text.encode("utf-16-le")[2 * entity.start : 2 * entity.end].decode("utf-16-le")


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("", []),
        ("no entities", []),
        ("hi @Alice!", [Mention(3, 9, "alice")]),
        ("@a_1 @zz", [Mention(0, 4, "a_1"), Mention(5, 8, "zz")]),
        ("你好@alice你好", [Mention(2, 8, "alice")]),
        ("＠Ａｌｉｃｅ", [Mention(0, 6, "alice")]),
        ("😀@bob", [Mention(2, 6, "bob")]),
        ("@al\u200bice", [Mention(0, 3, "al")]),
        ("(@bob), .@bob:", [Mention(1, 5, "bob"), Mention(9, 13, "bob")]),
        ("@bob#foo", [Mention(0, 4, "bob")]),
        ("#foo@bob", [Hashtag(0, 4, "foo")]),
        ("#北京@bob", [Hashtag(0, 3, "北京"), Mention(3, 7, "bob")]),
        ("#Foo #foo_bar2", [Hashtag(0, 4, "foo"), Hashtag(5, 14, "foo_bar2")]),
        ("#北京#你好", [Hashtag(0, 4, "北京")]),
        ("今天#北京#很好 #天 气", [Hashtag(2, 6, "北京"), Hashtag(9, 11, "天")]),
        ("＃ｆｏｏ﹟bar", [Hashtag(0, 5, "foo")]),
        ("#Straße #cafe\u0301", [Hashtag(0, 7, "strasse"), Hashtag(8, 14, "café")]),
        ("#ｶ\uff9eﾝ 𠮷#𠮷野家😀", [Hashtag(0, 4, "ガン"), Hashtag(7, 12, "𠮷野家")]),
        ("#किताब", [Hashtag(0, 6, "किताब")]),
        ("#ㄱㅏ나", [Hashtag(0, 4, "가나")]),
        ("#foo℀", [Hashtag(0, 4, "foo")]),
        ("see https://example.org/#a, #b", [Link(4, 26, "https://example.org/#a"), Hashtag(28, 30, "b")]),
        ("https://example.org/@bob", [Link(0, 24, "https://example.org/@bob")]),
        ("北https://t.cn/a北@bob", [Link(1, 15, "https://t.cn/a"), Mention(16, 20, "bob")]),
    ],
)
def test_entities(text: str, entities: list[Entity]) -> None:
    assert entities_of(text) == entities


@pytest.mark.parametrize(
    "text",
    [
        "@a",
        "@" + "a" * 31,
        "bob@example.org",
        "@bob@social.example",
        "@@bob",
        "@bobé",
        "é@bob",
        "@боб",
        "@ bob",
        "@",
        "#",
        "# foo",
        "C#sharp",
        "##",
        "#-a",
        "#\u0301a",
        "#️⃣",
        "#" + "a" * (MAX_TAG + 1),
    ],
)
def test_what_is_plain_text(text: str) -> None:
    assert entities_of(text) == []


def test_the_longest_hashtag() -> None:
    assert [type(entity) for entity in entities_of("#" + "a" * MAX_TAG)] == [Hashtag]


@given(texts)
def test_entities_are_in_order_and_do_not_overlap(text: str) -> None:
    """They include their signs, and consist of whole characters."""
    at = 0
    for entity in entities_of(text):
        assert at <= entity.start < entity.end
        at = entity.end
        signs = {Mention: "@＠﹫", Hashtag: "#＃﹟", Link: "hH"}[type(entity)]
        assert part(text, entity)[0] in signs
    assert 2 * at <= len(text.encode("utf-16-le"))


@given(texts)
@example("#a\u0301\u200d @bob\u0301 https://example.org/e\u0301 #한\u1161")
def test_entities_cut_no_character_in_two(text: str) -> None:
    """Each ends at the end of an extended grapheme cluster, except for invisible characters after it."""
    for entity in entities_of(text):
        rest = text.encode("utf-16-le")[2 * entity.end :].decode("utf-16-le")
        assert regex.match(r"(?![\p{Default_Ignorable_Code_Point}\p{Emoji_Modifier}])\p{Grapheme_Extend}", rest) is None


@given(texts)
def test_entities_cut_no_word_in_two(text: str) -> None:
    """A hashtag without a closing sign is not followed by a letter or digit, nor a mention or link by an ASCII one."""
    for entity in entities_of(text):
        if part(text, entity)[-1] in "#＃﹟":
            continue
        rest = text.encode("utf-16-le")[2 * entity.end :].decode("utf-16-le")
        follows = r"[\p{L}\p{Nd}_]" if isinstance(entity, Hashtag) else r"[A-Za-z0-9]"
        assert regex.match(follows, rest) is None, (text, entity)


@given(texts)
def test_the_text_of_an_entity_has_only_that_entity(text: str) -> None:
    for entity in entities_of(text):
        [alone] = entities_of(part(text, entity))
        assert alone == replace(entity, start=0, end=entity.end - entity.start)


@given(texts)
@example("#ŉ #ǰ #ΐ #ﬄ #ẞ #İ")
def test_a_hashtag_is_what_the_keyword_matches(text: str) -> None:
    """Except for hashtags too long for filters, `#tag` matches each hashtag and nothing else."""
    tags = {entity.tag for entity in entities_of(text) if isinstance(entity, Hashtag)}
    for tag in tags:
        assert keyword_of(f"#{tag}").words == (f"#{tag}",)
        assert not keyword_of(f"#{tag}").phrases
        assert terms_of(text).contain(keyword_of(f"#{tag}"))
    words = {word[1:] for word in terms_of(text).words if word.startswith("#")}
    assert tags == {word for word in words if len(word) <= MAX_TAG}


@given(texts)
@example("@ß\u1161")
def test_links_and_mentions_are_those_of_the_text(text: str) -> None:
    """A link keeps its spelling. A text that consists of a mention alone is parsed as the same mention."""
    found = entities_of(text)
    assert [each.url for each in found if isinstance(each, Link)] == [text[a:b] for a, b in links_in(text)]
    for entity in found:
        if isinstance(entity, Mention):
            [alone] = entities_of(part(text, entity))
            assert isinstance(alone, Mention)
            assert alone.login == entity.login
            assert fold(part(text, entity))[1:].startswith(entity.login)


@pytest.mark.parametrize(
    ("text", "maximum"),
    [("#a " * 400, 333), ("#北#" * 400, 333), ("@ab " * 300, 250), ("http://a " * 120, 111)],
)
def test_the_most_entities_of_a_text(text: str, maximum: int) -> None:
    """A text of 1,000 characters, the longest allowed for a post, has this many at most."""
    assert len(entities_of(text[:1000])) in (maximum, maximum + 1)


@pytest.mark.parametrize(
    "piece",
    [
        *("#", "@", "#a", "@a", "@ab", "#a\u0301", "＃", "https://", "ﷺ#", "\u200d", "#北", "@@", "ㅏ"),
        *("#a·", "#א״", "#п'", "@ab-", "@ab:a.", "@ab/", "a+@", "#1", "#_", "a.bc/@", "#a\u00ad"),
    ],
)
def test_long_hostile_texts(piece: str) -> None:
    """The time is linear: with backtracking, the test would exceed its time limit."""
    text = (piece * 100_000)[:100_000]
    tags = {word[1:] for word in terms_of(text).words if word.startswith("#") and len(word) <= MAX_TAG + 1}
    assert {entity.tag for entity in entities_of(text) if isinstance(entity, Hashtag)} == tags
