"""From HTML to text: what a reader would see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.sources.text import html_to_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("plain  text", "plain text"),
        ("a &lt; b &amp; c&nbsp;d", "a < b & c d"),
        ("<p>One</p><p>Two<br>Three</p>", "One\nTwo\nThree"),
        ("in<b>si</b>de a <i>line</i>", "inside a line"),
        ("<ul><li>a<li>b</ul>c", "a\nb\nc"),
        ("<table><tr><td>1</td><td>2</td></tr></table>", "1 2"),
        ("a<script>alert('<p>x</p>')</script>b<style>p{}</style>c<!-- d -->e", "abce"),
        ("<script>a</script><script src=x></script>b", "b"),
        ("<svg><text>drawn</text></svg>seen", "seen"),
        ("seen</script></p></div>", "seen"),
        ("x\0y\x07z", "x y z"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<a href='javascript:alert(1)' onclick=alert(2)>link</a>", "link"),
    ],
)
def test_html_becomes_what_is_seen(html: str, text: str) -> None:
    assert html_to_text(html) == text


@given(st.text(alphabet="<>/!-&;abpscriptyle \n=\"'#x0\0", max_size=200))
def test_nothing_breaks_it_and_its_lines_are_tidy(html: str) -> None:
    text = html_to_text(html)
    assert "\0" not in text
    assert text == "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
