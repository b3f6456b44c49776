"""Pages, read as a browser does."""

from html.parser import HTMLParser

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


class Page(HTMLParser):
    """Which tags are open, and what the page refers to."""

    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read_page(path):
    """The text of a page and what it refers to; its tags are closed in order."""
    page = Page()
    text = path.read_text(encoding="utf-8")
    page.feed(text)
    assert not page.open
    return text, page.links
