"""URLs of profiles: which are accepted, and the refusal of those that programs could read differently."""

import pytest

from graph.errors import ProblemCode
from graph.text.validation import Check
from graph.text.web_urls import MAX_URL, normal_url

LABEL = "a" * 63


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org",
        "https://example.org/",
        "https://sub.example.co.uk:8443/a/b.png?c=d&e=%20&f#g?h",
        "https://example.org?q",
        "https://example.org#f",
        "https://xn--r8jz45g.example/%E3%81%82",
        "https://example.xn--p1ai",
        "https://1.2.3.example",
        "https://example.org/@someone/(x)!$&'*+,;=:~",
        f"https://{LABEL}.{LABEL}.{LABEL}.{'a' * 57}.org",
    ],
)
def test_https_urls_of_domain_names_are_accepted(url: str) -> None:
    check = Check()

    assert check.url(f" {url}\n", "websiteUrl") == url
    assert check.problems == []


@pytest.mark.parametrize(
    ("url", "normal"),
    [("HTTPS://Example.ORG:443/A?B#C", "https://example.org:443/A?B#C"), ("https://A.xN--P1AI", "https://a.xn--p1ai")],
)
def test_scheme_and_host_become_lower_case(url: str, normal: str) -> None:
    assert normal_url(url) == normal


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "//example.org",
        "example.org",
        "javascript:alert(1)",
        "data:text/html,x",
        "https:/example.org",
        "https:example.org",
        "https:///example.org",
        "https:\\\\example.org",
        "https://",
        "https://localhost",
        "https://org",
        "https://example.org.",
        "https://.example.org",
        "https://exa_mple.org",
        "https://-example.org",
        "https://example-.org",
        "https://example..org",
        "https://127.0.0.1/",
        "https://0x7f.1",
        "https://2130706433/",
        "https://example.0x7f",
        "https://[::1]/",
        "https://user@example.org",
        "https://user:secret@example.org",
        "https://example.org\\@evil.example",
        "https://example.org\\.evil.example",
        "https://example.org:0",
        "https://example.org:",
        "https://example.org:65536",
        "https://example.org:8o",
        "https://example.org:٨",
        "https://exämple.org",
        "https://example.org/ä",
        "https://example。org",
        "https://ⓔxample.org",
        "https://example.org/a b",
        "https://example.org/a\nb",
        "https://example.org/a\tb",
        "https://exa\tmple.org",
        "https://example.org/\u0000",
        "https://example.org/%",
        "https://example.org/%2",
        "https://example.org/%zz",
        "https://example.org/<script>",
        'https://example.org/"onload=',
        "https://example.org/`",
        "https://example.org/{}",
        "https://example.org/|",
        "https://example.org/^",
        "https://example.org/[x]",
        "https://example.org/#a#b",
        "https://example.org/\ud800",
        "https://example.org/\u202egnp.exe",
        f"https://{LABEL}a.org",
        f"https://{LABEL}.{LABEL}.{LABEL}.{'a' * 58}.org",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    """Each is refused with one problem of the given field."""
    check = Check()

    assert check.url(url, "avatarUrl") == ""
    assert [(problem.code, problem.field) for problem in check.problems] == [(ProblemCode.INVALID, ("avatarUrl",))]


@pytest.mark.parametrize(("length", "valid"), [(MAX_URL, True), (MAX_URL + 1, False), (100_000, False)])
def test_the_length_of_a_url_is_limited(length: int, valid: bool) -> None:
    start = "https://example.org/"
    url = start + "x" * (length - len(start))
    check = Check()

    assert check.url(url, "websiteUrl") == (url if valid else "")
    assert [dict(problem.params) for problem in check.problems] == (
        [] if valid else [{"max": str(MAX_URL), "length": str(length)}]
    )


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_text_removes_a_url(text: str) -> None:
    check = Check()

    assert check.url(text, "websiteUrl") == ""
    assert check.problems == []
