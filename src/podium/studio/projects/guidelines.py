"""A project's guidelines: Markdown, shown as HTML that can do nothing."""

from __future__ import annotations

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def guidelines_html(text: str) -> Markup:
    r"""Markdown as HTML; links open another tab, so that nobody loses the page they judge on.

    Example:
        >>> str(guidelines_html("**Best first** <script>"))
        '<p><strong>Best first</strong> &lt;script&gt;</p>\n'
    """
    markup = nh3.clean(
        _MARKDOWN.render(text),
        url_schemes={"http", "https", "mailto"},
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return Markup(markup)  # noqa: S704  # nosec B704 - sanitised above
