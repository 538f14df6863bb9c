"""How long the sentences of a text are."""

import re

from pydantic import BaseModel, Field

__TOOL_META__ = {
    "name": "readability",
    "description": "Counts words and sentences of a text and shows its longest sentence.",
    "dependencies": [],
    "effects": "pure",
    "output_params": ["words", "sentences", "longest_words", "longest_begins"],
}


class InputModel(BaseModel):
    text: str = Field(description="the text, Markdown or plain")


def run(input_model):
    body = "\n".join(line for line in input_model.text.splitlines() if not line.startswith("#"))
    sentences = [" ".join(part.split()) for part in re.split(r"(?<=[.!?])\s+", body) if part.strip()]
    longest = max(sentences, key=lambda sentence: len(sentence.split()), default="")
    return {
        "words": len(body.split()),
        "sentences": len(sentences),
        "longest_words": len(longest.split()),
        "longest_begins": " ".join(longest.split()[:6]),
    }
