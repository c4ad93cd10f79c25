"""The colours of the web app, as its style sheets define them."""

import re
from colorsys import hls_to_rgb
from itertools import product

import pytest

from tests.web.stage import FOLDER

STYLES = FOLDER.parents[1] / "examples" / "web" / "src" / "styles"
TEXT, SHAPE = 4.5, 3.0
"""The least contrasts of texts and of the shapes of controls, by WCAG 2.2, levels AA."""

Colour = tuple[float, float, float]


def colours(theme: int) -> dict[str, Colour]:
    """Return the custom properties that are colours, in the light theme (0) or the dark theme (1)."""
    found = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);", (STYLES / "base.css").read_text())
    return {name: hexadecimal(both[theme]) for name, *both in found}


def hexadecimal(text: str) -> Colour:
    """Return the colour of a text such as #fff or #1a2b3c."""
    digits = text[1:] if len(text) == 7 else "".join(2 * digit for digit in text[1:])
    red, green, blue = bytes.fromhex(digits)
    return red / 255, green / 255, blue / 255


def avatars(theme: int) -> list[tuple[Colour, Colour]]:
    """Return the colours of the letters and of the background of each hue."""
    hues = [hue / 12 for hue in range(12)]
    shares = [
        [tuple(int(share) / 100 for share in pair) for pair in re.findall(r"hsl\(var\(--hue\) (\d+)% (\d+)%\)", line)]
        for line in re.findall(r"light-dark\(hsl.*", (STYLES / "parts.css").read_text())
    ]
    (letters, ground) = (each[theme] for each in shares)
    return [(hls_to_rgb(hue, letters[1], letters[0]), hls_to_rgb(hue, ground[1], ground[0])) for hue in hues]


def contrast(one: Colour, other: Colour) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted(luminance(colour) for colour in (one, other))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: Colour) -> float:
    """Return the relative luminance."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrasts(theme: int) -> None:
    """All texts and the edges of inputs contrast with their background, in both themes."""
    known = colours(theme)
    pairs = [*product(("text", "quiet", "danger", "accent"), ("background", "surface", "raised"))]
    pairs += [("accent-text", "accent"), ("accent-text", "accent-strong"), ("accent", "tint"), ("text", "tint")]
    pairs += [("warning", "warning-tint"), ("notice-text", "notice")]
    low = {pair: contrast(known[pair[0]], known[pair[1]]) for pair in pairs}
    edges = {("edge", behind): contrast(known["edge"], known[behind]) for behind in ("background", "surface", "raised")}
    assert {pair: ratio for pair, ratio in low.items() if ratio < TEXT} == {}
    assert {pair: ratio for pair, ratio in edges.items() if ratio < SHAPE} == {}
    assert min(contrast(*pair) for pair in avatars(theme)) >= TEXT
