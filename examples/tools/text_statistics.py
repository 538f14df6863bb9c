"""Numbers about a text, and what can be picked out of it."""

import re
from collections import Counter
from typing import Dict, List, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

__TOOL_META__ = {
    "name": "text_statistics",
    "description": (
        "Counts words, sentences and paragraphs of a text (Markdown or plain), shows its longest sentence, its readability (LIX) "
        "and most frequent words, and extracts e-mail addresses, links, dates, numbers or what a regular expression finds."
    ),
    "dependencies": [],
    "effects": "pure",
    "output_params": ["words", "sentences", "longest_words", "longest_begins", "lix", "extracted"],
}

PATTERNS = {
    "emails": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "links": r"https?://[^\s<>()\[\]\"']+[^\s<>()\[\]\"'.,;:!?]",
    "dates": r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}\.\d{1,2}\.\d{4}\b|\b\d{1,2}/\d{1,2}/\d{4}\b",
    "numbers": r"(?<![\w.,-])[+-]?\d+(?:[.,]\d+)*(?![\w-])",
}
# A line that is set apart: a heading, a row of a table, a rule, code.
APART = re.compile(r"^\s*(#{1,6}\s|\||[-*_=]{3,}\s*$|```|~~~)")
# Short forms whose point ends no sentence.
SHORT = re.compile(r"(?:\b(?:[A-Za-z]|e\.g|i\.e|z\.B|etc|cf|vs|Dr|Mr|Mrs|Ms|St|No|ca|Fig|Nr))\.$")


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="the text, Markdown or plain")
    top: int = Field(0, ge=0, le=200, description="how many of the most frequent words to show")
    min_letters: int = Field(5, ge=1, le=50, description="the shortest words that count as frequent")
    extract: List[Literal["emails", "links", "dates", "numbers"]] = Field(default_factory=list)
    patterns: Dict[str, str] = Field(default_factory=dict, description="names and regular expressions to extract as well")

    @field_validator("patterns")
    @classmethod
    def are_patterns(cls, patterns):
        for name, pattern in patterns.items():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{name!r} is no regular expression: {error}") from None
        return patterns


def paragraphs_of(text):
    """Running text without headings, tables and code; each item of a list is a paragraph."""
    paragraphs, current, code = [], [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith(("```", "~~~"))
        code = code != fence
        item = re.match(r"^\s*([-*+]|\d+[.)])\s+", line)
        if fence or code or APART.match(line) or not line.strip() or item:
            if current:
                paragraphs.append(" ".join(current))
            current = [line[item.end() :].strip()] if item and not code else []
        else:
            current.append(line.strip())
    if current:
        paragraphs.append(" ".join(current))
    return paragraphs


def sentences_of(paragraph):
    sentences = []
    for part in re.split(r"(?<=[.!?…])[\"'”»)]*\s+", paragraph):
        if sentences and SHORT.search(sentences[-1]):
            sentences[-1] += " " + part
        elif part.strip():
            sentences.append(part)
    return sentences


def words_of(text):
    return re.findall(r"[^\W_]+(?:['’.,-][^\W_]+)*", text)


def found(pattern, text):
    """Each finding once, in the order of the text."""
    # Without a group the whole match, with one what it holds, with several a list of what they hold.
    kept = dict.fromkeys(match.groups() or (match.group(),) for match in re.finditer(pattern, text, re.MULTILINE) if match.group())
    return [groups[0] if len(groups) == 1 else list(groups) for groups in kept]


def run(input_model):
    text = input_model.text
    paragraphs = paragraphs_of(text)
    sentences = [sentence for paragraph in paragraphs for sentence in sentences_of(paragraph)]
    words = [word for sentence in sentences for word in words_of(sentence)]
    long = sum(len(word) > 6 for word in words)
    longest = max(sentences, key=lambda sentence: len(words_of(sentence)), default="")
    result = {
        "characters": len(text),
        "words": len(words),
        "sentences": len(sentences),
        "paragraphs": len(paragraphs),
        "words_per_sentence": round(len(words) / len(sentences), 2) if sentences else 0,
        # Below 40 is easy to read, above 60 hard, in most European languages.
        "lix": round(len(words) / len(sentences) + 100 * long / len(words), 1) if words else 0,
        "longest_words": len(words_of(longest)),
        "longest_begins": " ".join(longest.split()[:6])[:80],
        "reading_minutes": round(len(words) / 230, 1),
    }
    if input_model.top:
        counts = Counter(word.lower() for word in words if len(word) >= input_model.min_letters)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: input_model.top]
        result["top_words"] = [{"word": word, "count": count} for word, count in ordered]
    wanted = {name: PATTERNS[name] for name in input_model.extract}
    wanted.update(input_model.patterns)
    if wanted:
        result["extracted"] = {name: found(pattern, text) for name, pattern in wanted.items()}
    return result
