"""HTMLParser (P3): what a reader of a page sees, whatever the markup is like."""

from __future__ import annotations

import asyncio
import time

import pytest

from agentkernel_kb.rag.parsers import HTMLParser

_CHARS = 300_000


def shown(markup: str) -> str:
    return HTMLParser().read(markup).text


def test_sections_stand_under_their_headings() -> None:
    markup = "<title> The  Rules </title><p>Before.</p><h1>Travel</h1><p>Go.</p><h2>Trains &amp; buses</h2><p>Sit.</p>"
    sections = asyncio.run(HTMLParser().parse(markup.encode(), "rules.html"))

    assert [(each.text.strip(), each.metadata.get("headings")) for each in sections] == [
        ("Before.", None),
        ("# Travel\n\nGo.", ["Travel"]),
        ("## Trains & buses\n\nSit.", ["Travel", "Trains & buses"]),
    ]
    assert {(each.source, each.metadata["title"]) for each in sections} == {("rules.html", "The Rules")}


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>X</script>", "<style>X</style>", "<template>X</template>", "<noscript>X</noscript>", "<!-- X -->",
        "<div hidden>X</div>", "<div hidden=''><div>X</div>X</div>", "<p style='color:red; display : none'>X</p>",
        "<span aria-hidden=true>X</span>", "<div style=\"visibility:hidden\">X<b>X</div>", "<svg><title>X</title><text>X</svg>",
        "<select><option>X</select>", "<iframe>X</iframe>", "<SCRIPT type=x>'</scr>'X</SCRIPT >", "<script>X<!--</script>",
        "<p hidden>X<p>", "<ul><li hidden>X<li></ul>", "<table><tr><td hidden>X<td></table>", "<![CDATA[X]]>", "<?php X ?>",
        "<head><meta content=X></head>", "<a title='X>X'></a>", "<input value=X>", "<object>X</object>", "<dialog>X</dialog>",
    ],
)  # fmt: skip
def test_what_is_hidden_is_left_out_and_what_follows_is_not(hidden: str) -> None:
    assert shown(f"<p>seen</p>{hidden}<p>also seen</p>") == "seen\n\nalso seen"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>one<p>two", "one\n\ntwo"), ("a<br>b<br/>c", "a\nb\nc"), ("<p>a  b\n c</p>", "a b c"),
        ("x &lt;y&gt; &eacute;", "x <y> é"),
        ("1 < 2 and 3<4 <", "1 < 2 and 3<4 <"), ("<b>bold</i> text</b>", "bold text"), ("</p></div>text", "text"),
        ("<div><p>a</div>b", "a\n\nb"), ("<h1>a<h2>b", "# a\n\n## b"), ("<a href=x>link</a>", "link"),
        ('<img src=x alt="A duck">', "A duck"), ("<a href='x>text</a>more", "textmore"), ("<P>UP</P>", "UP"),
        ("text <script>never ends", "text"), ("text <!-- never ends", "text"), ("text <a href=", "text"), ("text <a", "text"),
        ("<pre>def f():\n    return 1\n</pre>", "```\ndef f():\n    return 1\n```"), ("<p># no heading</p>", "\\# no heading"),
        ("&#99999999999999999999999999; &#xD800; &#0;", "\ufffd \ufffd \ufffd"), (f"&#{'9' * 5000};", "\ufffd"), ("", ""),
        ("<textarea>typed</textarea>", "typed"), ("<ruby>漢<rp>(</rp><rt>kan</rt></ruby>", "漢kan"), ("\x00a", "\x00a"),
    ],
)  # fmt: skip
def test_markup_is_read_as_far_as_it_goes(markup: str, text: str) -> None:
    assert shown(markup) == text


def test_lists_keep_their_marks_and_their_depth() -> None:
    markup = "<ul><li>a<ul><li>b</ul><li>c</ul><ol><li>one</li><li>two</li></ol>"

    assert shown(markup) == "- a\n  - b\n- c\n1. one\n2. two"


def test_rows_of_a_table_are_lines() -> None:
    markup = """<table><caption>Ducks</caption><thead><tr><th>Name<th>Home</thead>
      <tr><td>Teal</td><td><ul><li>Pond</li><li>Marsh</li></ul></td></tr>
      <tr><td>Wood <b>Duck</b></td><td>&nbsp;</td></tr></table>after"""

    assert shown(markup) == "Ducks\n\n| Name | Home |\n| Teal | Pond; Marsh |\n| Wood Duck |  |\n\nafter"


def test_a_table_that_only_lays_out_a_page_is_no_table() -> None:
    assert shown("<table><tr><td><h1>Page</h1><p>Text</p></td><td>menu</td></tr></table>") == "# Page\n\nText\n\nmenu"


def test_a_table_in_a_cell_is_one_line_of_it() -> None:
    inner = "<table><tr><th>Type<th>Sound<tr><td>Short<td>quak</table>"

    assert shown(f"<table><tr><td>Quack<td>{inner}</table>") == "| Quack | Type | Sound; Short | quak |"


@pytest.mark.parametrize(
    "unit",
    [
        "<", "<a ", "</a ", "<a href=\"", "<a b='", "<a b=c ", "<a =    ", "<!", "<!--", "<![CDATA[", "<?",
        "<script>", "<script></",
        "<script></scr>", "&", "&#x", "&#9999999999", "<div>", "<div hidden>", "<table>", "<table><tr><td>x", "<td>x", "<tr>",
        "<ul><li>x", "<select></div>", "<p>x", "<b>x", "<b>x</i>", "</p></div></table></td>", "<table><td><div></table>",
        "<ol>",
        "<h1>", "<pre>```", "<br>", "<svg><title>x", "`", "# x\n", "<img alt=x>", "x\n===\n", "\n", " ", "\0", "\ud800",
        "<dt>x<dd>y",
    ],
)  # fmt: skip
def test_a_hostile_page_takes_time_that_grows_with_its_length_alone(unit: str) -> None:
    page = (unit * (_CHARS // len(unit) + 1))[:_CHARS]
    started = time.monotonic()

    text = shown(page)

    assert len(text) <= 8 * _CHARS
    assert time.monotonic() - started < 60  # In quadratic time it would be hours.


@pytest.mark.parametrize("attributes", ['b="c" ' * 50_000, f'href="{"x" * _CHARS}"', f"{'x' * _CHARS}", f"a={'x' * _CHARS}"])
def test_huge_attributes_are_read_over(attributes: str) -> None:
    assert shown(f"<p {attributes} hidden>X</p><p {attributes}>seen</p>") == "seen"
