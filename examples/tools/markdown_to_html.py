"""Markdown as HTML, safe to show."""

import html
import re
from typing import Optional

from markdown_it import MarkdownIt
from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "markdown_to_html",
    "description": (
        "Renders Markdown (CommonMark with tables and strikethrough) as HTML, as a fragment or a whole page. HTML in the text is "
        "shown, not executed; links with javascript: and the like are left out. Headings get ids."
    ),
    "dependencies": ["markdown-it-py>=3,<5"],
    "effects": "pure",
    "output_params": ["html", "title", "headings"],
}

STYLE = """body{font:16px/1.55 system-ui,sans-serif;color:#1f2328;max-width:48rem;margin:2rem auto;padding:0 1rem}
h1,h2,h3{line-height:1.25}h2{margin-top:2rem}a{color:#0b57d0}img,svg{max-width:100%}
code,pre{font:0.9em ui-monospace,monospace;background:#f4f5f7;border-radius:4px}code{padding:.1em .3em}
pre{padding:.8em 1em;overflow:auto}pre code{padding:0}blockquote{margin:0;padding-left:1em;border-left:3px solid #d0d7de;color:#57606a}
table{border-collapse:collapse}th,td{padding:.35em .8em;border-bottom:1px solid #d0d7de;text-align:left}"""


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    markdown: str
    page: bool = Field(False, description="whether to make a whole page with a style rather than a fragment")
    title: Optional[str] = Field(None, description="the page's title; the first heading if not given")
    language: str = Field("en", pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$", description="the page's language")


def identifier(text, taken):
    """An id from a heading's words, another one for each heading."""
    base = re.sub(r"[^\w]+", "-", text.lower()).strip("-") or "section"
    name, count = base, 2
    while name in taken:
        name, count = f"{base}-{count}", count + 1
    taken.add(name)
    return name


def plain(inline):
    return "".join(child.content for child in inline.children or [] if child.type in ("text", "code_inline", "softbreak")).strip()


def run(input_model):
    renderer = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    tokens = renderer.parse(input_model.markdown)
    headings, taken = [], set()
    for token, inline in zip(tokens, tokens[1:]):
        if token.type == "heading_open":
            text = plain(inline)
            token.attrSet("id", identifier(text, taken))
            headings.append({"level": int(token.tag[1]), "text": text, "id": token.attrs["id"]})
    body = renderer.renderer.render(tokens, renderer.options, {})
    title = input_model.title or next((heading["text"] for heading in headings), "")
    if input_model.page:
        body = (
            f'<!doctype html>\n<html lang="{input_model.language}">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
        )
    return {"html": body, "title": title, "headings": headings}
