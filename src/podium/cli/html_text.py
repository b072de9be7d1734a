"""The text of HTML, as people read it."""

from __future__ import annotations

from html.parser import HTMLParser


def html_text(html: str) -> str:
    r"""Extract the text of an HTML page, one line per block.

    Example:
        >>> html_text("<h1>Red <b>shoes</b></h1><p>Size 42")
        'Red shoes\nSize 42'
    """
    parser = _Words()
    parser.feed(html)
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.words).splitlines())
    return "\n".join(line for line in lines if line)


class _Words(HTMLParser):
    """Collects the text that a browser would display."""

    _HIDDEN = frozenset({"script", "style", "template", "title"})
    _INLINE = frozenset({"a", "b", "code", "em", "i", "mark", "small", "span", "strong", "u"})

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        self._hidden += tag in self._HIDDEN
        if tag not in self._INLINE:
            self.words.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(self._hidden - (tag in self._HIDDEN), 0)
        if tag not in self._INLINE:
            self.words.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)
