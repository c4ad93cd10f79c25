"""The terms of texts: words, hashtags, phrases, and digests of deleted texts."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graph.text.terms import digest_of, keyword_of, terms_in, terms_of

SCRIPTS = "aB_1 #．＃é\u0301ßİпم北京東京ひカ゛ｶ\uff9eー한국ไทยกำहिनदीມ\u200d\ufe0f❤😀-,、・"

texts = st.text(alphabet=SCRIPTS, max_size=30) | st.text(max_size=30)


def finds(keyword: str, text: str) -> bool:
    return terms_of(text).contain(keyword_of(keyword))


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("rain", "Rain, again."),
        ("RAIN", "all the rain!"),
        ("strasse", "Eine Straße"),
        ("ΣΊΣΥΦΟΣ", "ο σίσυφος"),
        ("\u0390".upper(), "\u0390"),
        ("café", "un cafe\u0301"),
        ("fine", "ｆｉｎｅ and ﬁne"),
        ("some_name", "@some_name hi"),
        ("don't", "I don't know"),
        ("well-known", "known, and well"),
        ("дождь", "Снова Дождь"),
        ("किताब", "मेरी किताब"),
        ("كتاب", "هذا كتاب"),
        ("می\u200cخواهم", "میخواهم"),
        ("softhyphen", "soft\u00adhyphen"),
        ("1", "1\ufe0f\u20e3 first"),
        ("2026", "in 2026"),
        ("cafe", "un café"),
        ("café", "un cafe"),
        ("zurich", "Zürich"),
        ("viet", "Việt Nam"),
        ("lodz", "ŁÓDŹ"),
        ("da nang", "Đà Nẵng"),
        ("oeuvre", "L'Œuvre"),
        ("œuvre", "oeuvre"),
        ("smørrebrød", "smorrebrod"),
        ("aether", "Ǽther"),
        ("thor", "Þór"),
        ("ελλαδα", "Ελλάδα"),
        ("ежик", "Ёжик"),
        ("كتاب", "كِتَاب"),
        ("שלום", "שָׁלוֹם"),
        ("ışık", "Işık"),
        ("isik", "IŞIK"),
        ("ibrahim", "İbrahim"),
        ("istanbul", "İSTANBUL"),
        ("fedi", "fedi\u200bblock"),
        ("block", "fedi\u200bblock"),
    ],
)
def test_a_word_matches_texts_that_contain_it(keyword: str, text: str) -> None:
    """The word's case, width, normal form, invisible characters and context do not matter."""
    assert finds(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("rain", "rainy"),
        ("rain", "train"),
        ("rain", "the_rain"),
        ("cafe", "cafés"),
        ("か", "が"),
        ("ист", "йст"),
        ("कि", "किताब"),
        ("book", "किताब"),
        ("1", "10"),
    ],
)
def test_a_word_does_not_match_inside_another(keyword: str, text: str) -> None:
    """Only Latin, Greek, Arabic and Hebrew letters are compared without marks."""
    assert not finds(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("foo", "#foo"),
        ("#foo", "so #Foo!"),
        ("#foo", "＃ｆｏｏ"),
        ("#北京", "去 #北京 玩"),
        ("北京", "#北京"),
        ("#北京", "#北京#你好"),
        ("你好", "#北京#你好"),
        ("#北京", "今天#北京#很好"),
        ("#किताब", "#किताब"),
        ("#foo #bar", "#bar and #foo"),
        ("#北京#", "#北京"),
        ("iphone", "#iPhone手机"),
        ("#iphone手机", "#iPhone手机"),
    ],
)
def test_a_hashtag_and_its_words_match(keyword: str, text: str) -> None:
    """Hashtags match in any script. A second # closes the hashtag, as in Chinese microblogs."""
    assert finds(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("#foo", "foo"),
        ("#foo", "#foobar"),
        ("#北京", "#北京人"),
        ("#北京", "北京"),
        ("#你好", "#北京#你好"),
        ("#sharp", "C#sharp"),
        ("#part", "https://example.org/page#part"),
        ("#foo", "# foo"),
    ],
)
def test_a_hashtag_matches_whole_hashtags_only(keyword: str, text: str) -> None:
    """The keyword needs its # and cannot begin inside a word."""
    assert not finds(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("京", "东京和北京"),
        ("北京", "我在北京大学"),
        ("北京大学", "我在北京大学"),
        ("ガンダム", "機動戦士ｶﾞﾝﾀﾞﾑ"),
        ("ラーメン", "ラーメンが好き"),
        ("한국", "한국의 가을"),
        ("ไทย", "ภาษาไทยสวย"),
        ("ລາວ", "ພາສາລາວ"),
        ("ខ្មែរ", "ភាសាខ្មែរ"),
        ("မြန်မာ", "မြန်မာစာ"),
        ("哈哈哈", "哈哈哈哈"),
        ("𠮷野家", "去𠮷野家吃"),
        ("北 京", "京都在北边"),
    ],
)
def test_a_phrase_matches_anywhere_in_a_run(keyword: str, text: str) -> None:
    """This holds in scripts without spaces between words, and in Korean."""
    assert finds(keyword, text)


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("北京", "北、京"),
        ("北京", "北 京"),
        ("北京", "京北"),
        ("北京大学", "北京的大学"),
        ("哈哈哈", "哈哈"),
        ("大学北京", "北京大学，大北京"),
    ],
)
def test_a_phrase_matches_consecutive_characters_only(keyword: str, text: str) -> None:
    assert not finds(keyword, text)


def test_all_words_of_an_entry_must_occur() -> None:
    """They may occur in any order. An entry in two scripts is a word and a phrase."""
    assert finds("rain berlin", "Berlin, rain, Berlin")
    assert not finds("rain berlin", "rain in Rome")
    assert finds("iPhone手机", "买手机，iphone 吗")
    assert not finds("iPhone手机", "手机")
    assert not finds("iPhone手机", "iPhone")


@pytest.mark.parametrize("entry", ["", " ", "!?", "😀❤\ufe0f", "#", "# #", "\u0301", "\ud800", "、。「」・"])
def test_entries_without_a_word_are_empty_keywords(entry: str) -> None:
    keyword = keyword_of(entry)

    assert not keyword.words
    assert not keyword.phrases


@given(texts)
@example("#a#\u0301b ไทย#abc#def")
def test_every_text_matches_itself_as_a_keyword(text: str) -> None:
    assert finds(text, text)
    assert finds(text, f"前 {text} after")


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=60))
def test_the_fast_path_for_ascii_finds_the_same_words(text: str) -> None:
    assert terms_of(f"{text} Ж").words == terms_of(text).words | {"ж"}


@given(texts, st.data())
def test_a_keyword_that_matches_a_text_matches_its_digest(text: str, data: st.DataObject) -> None:
    """Otherwise a deletion would not reach every subscriber."""
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    keyword = keyword_of(data.draw(st.just(text[start:end]) | texts))

    if terms_of(text).contain(keyword):
        assert terms_in(digest_of(text)).contain(keyword)


def test_a_digest_matches_few_other_keywords() -> None:
    """For a phrase of three or more characters, it has only the pairs."""
    digest = terms_in(digest_of("Rain in #Berlin 我在北京大学，大北"))

    for keyword in ("rain", "#berlin berlin", "北京", "京", "北京大学"):
        assert digest.contain(keyword_of(keyword))
    for keyword in ("sun", "#rain", "南京", "上", "rain 上海", "学大"):
        assert not digest.contain(keyword_of(keyword))
    assert digest.contain(keyword_of("大北京")), "its pairs occur, though not in one piece"


def test_a_digest_is_compact_and_stable() -> None:
    """Digests are stored, so their form must never change."""
    assert digest_of("Foo 北京, #foo foo") == "E5Q1xpw5Fxzf34TtKtogRlUTi6ydXzeUlH+BcHqt"
    assert len(digest_of("北，京")) == 16
    assert digest_of("😀") == ""
    assert not terms_in("").codes
