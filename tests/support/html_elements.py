"""The elements of an HTML page."""

from __future__ import annotations

from html.parser import HTMLParser

_WITHOUT_END = ("meta", "line", "rect", "br")


class Elements(HTMLParser):
    """Collect elements, and fail if one ends that is not the innermost open one.

    Attributes:
        found: Tag, attributes and own text of every element, in order.
        open: Elements that have no end.
    """

    def __init__(self, page: str):
        super().__init__()
        self.found: list[list] = []
        self.open: list[list] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in _WITHOUT_END:
            self.open.append(self.found[-1])

    def handle_startendtag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open:
            self.open[-1][2] += data

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (attributes, text) for name, attributes, text in self.found if name == tag
        ]

    def texts(self, tag: str, kind: str | None = None) -> list[str]:
        """Return the texts of elements, if given of one class."""
        return [
            text.strip()
            for attributes, text in self.all(tag)
            if kind in (None, attributes.get("class")) and text.strip()
        ]
