"""The text of a web page."""

import gzip
import io
import re
import ssl
import urllib.error
import urllib.request
import zlib
from html.parser import HTMLParser
from typing import Optional
from urllib.parse import urljoin, urlsplit

import certifi
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__TOOL_META__ = {
    "name": "fetch_page",
    "description": (
        "Fetches a web page, or takes HTML, and returns its title, description and readable text with headings and lists as in "
        "Markdown, and its links. Plain text and JSON are returned as they are."
    ),
    "dependencies": ["certifi"],
    "effects": "read",
    "network": True,
    "timeout": 60,
    "output_params": ["title", "text", "links", "url"],
}

BYTES_MOST = 5_000_000
LINKS_MOST = 500
SKIPPED = {"script", "style", "noscript", "template", "svg", "head", "iframe", "object"}
BLOCKS = {
    "p", "div", "section", "article", "main", "aside", "header", "footer", "nav", "ul", "ol", "table", "tr", "blockquote",
    "pre", "figure", "figcaption", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "dl", "dt", "dd", "form", "fieldset", "address",
}


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: Optional[str] = Field(None, description="an address with http or https; with `html`, where its links start")
    html: Optional[str] = Field(None, description="HTML that is there already: nothing is fetched")
    max_chars: int = Field(20_000, ge=100, le=1_000_000, description="how much of the text to return")
    links: bool = Field(True, description="whether to return the links")
    timeout: float = Field(20, gt=0, le=50, description="seconds")

    @field_validator("url")
    @classmethod
    def is_web_address(cls, url):
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError("an address with http:// or https:// is needed")
        return url

    @model_validator(mode="after")
    def one_source(self):
        if self.url is None and self.html is None:
            raise ValueError("give `url` or `html`")
        return self


class Page(HTMLParser):
    """Collects what a reader sees."""

    def __init__(self, base):
        super().__init__(convert_charrefs=True)
        self.base = base
        self.pieces, self.links = [], []
        self.title, self.description, self.language = "", "", None
        self.hidden, self.in_title, self.pre = [], False, 0
        self.link = None

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag == "html":
            self.language = named.get("lang") or None
        elif tag == "title":
            self.in_title = not self.title and self.hidden in ([], ["head"])
        elif tag == "base" and named.get("href"):
            self.base = urljoin(self.base, named["href"])
        elif tag == "meta" and (named.get("name") or "").lower() == "description":
            self.description = " ".join((named.get("content") or "").split())
        if tag == "body" or (tag in BLOCKS and self.hidden == ["head"]):
            # A head need not be closed: it ends where the text begins.
            self.hidden.clear()
        elif tag in SKIPPED:
            self.hidden.append(tag)
        if self.hidden:
            return
        if tag in BLOCKS:
            self.pieces.append("\n")
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.pieces.append("\n" + "#" * int(tag[1]) + " ")
        elif tag == "li":
            self.pieces.append("\n- ")
        elif tag == "br":
            self.pieces.append("\n")
        elif tag in ("td", "th"):
            self.pieces.append(" | ")
        elif tag == "img" and named.get("alt"):
            self.pieces.append(f"[{named['alt']}]")
        elif tag == "a" and named.get("href"):
            self.link = {"text": "", "url": urljoin(self.base, named["href"].strip())}
        self.pre += tag == "pre"

    def handle_endtag(self, tag):
        self.in_title = self.in_title and tag != "title"
        if tag in self.hidden:
            del self.hidden[self.hidden.index(tag) :]
            return
        if self.hidden:
            return
        if tag in BLOCKS:
            self.pieces.append("\n")
        if tag == "pre":
            self.pre = max(0, self.pre - 1)
        if tag == "a" and self.link:
            self.link["text"] = " ".join(self.link["text"].split())
            if urlsplit(self.link["url"]).scheme in ("http", "https", "mailto") and self.link not in self.links:
                self.links.append(self.link)
            self.link = None

    def handle_data(self, data):
        if self.in_title:
            self.title += data
        elif not self.hidden:
            # Spaces of preformatted text are kept from being joined.
            self.pieces.append(data.expandtabs(4).replace(" ", "\0") if self.pre else re.sub(r"\s+", " ", data))
            if self.link:
                self.link["text"] += data

    def text(self):
        lines = [re.sub(r"[ \t\u00a0]+", " ", line).strip() for line in "".join(self.pieces).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip().replace("\0", " ")


def unpacked(data, encoding):
    """The body without its compression; never more of it than is read of any page."""
    if encoding in ("gzip", "x-gzip"):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(BYTES_MOST)
    if encoding == "deflate":
        return zlib.decompressobj().decompress(data, BYTES_MOST)
    return data


def charset_of(data, declared):
    """The charset that the header or the page itself declares."""
    if declared:
        return declared
    match = re.search(rb"<meta[^>]+charset=[\"']?([\w-]+)", data[:4096], re.IGNORECASE)
    return match.group(1).decode("ascii") if match else "utf-8"


def fetched(given):
    context = ssl.create_default_context()
    # Where Python finds no certificates of the system's, these hold.
    context.load_verify_locations(certifi.where())
    headers = {"User-Agent": "Mozilla/5.0 (compatible; fetch_page)", "Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip, deflate"}
    request = urllib.request.Request(given.url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=given.timeout, context=context) as response:
            data = response.read(BYTES_MOST)
            kind = response.headers.get_content_type()
            charset = response.headers.get_content_charset()
            encoding = (response.headers.get("Content-Encoding") or "").lower()
            status, url = response.status, response.url
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{given.url} answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise RuntimeError(f"{given.url} cannot be reached: {error.reason}") from None
    except TimeoutError:
        raise RuntimeError(f"{given.url} does not answer within {given.timeout:g} s") from None
    if not (kind.startswith("text/") or kind.endswith(("json", "xml")) or kind == "application/octet-stream"):
        raise RuntimeError(f"{given.url} is {kind}, not text")
    data = unpacked(data, encoding)
    try:
        text = data.decode(charset_of(data, charset), "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    return text, kind, status, url


def run(input_model):
    kind, status, url = "text/html", None, input_model.url
    text = input_model.html
    if text is None:
        text, kind, status, url = fetched(input_model)
    page = Page(url or "")
    if kind in ("text/html", "application/xhtml+xml"):
        page.feed(text)
        page.close()
        text = page.text()
    result = {
        "url": url,
        "status": status,
        "title": " ".join(page.title.split()),
        "description": page.description,
        "language": page.language,
        "text": text[: input_model.max_chars],
        "truncated": len(text) > input_model.max_chars,
    }
    if input_model.links:
        result["links"] = page.links[:LINKS_MOST]
    return result
