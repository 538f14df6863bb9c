"""A Python tool: what it says of itself, what it takes, and what it does. It reads this folder and writes nothing."""

from collections import Counter

from pydantic import BaseModel, Field

__TOOL_META__ = {
    "name": "frequent_words",
    "description": "The words of a text file that occur most often, without the short ones.",
    "dependencies": [],  # from PyPI; pydantic is always there
    "effects": "read",
}


class InputModel(BaseModel):
    path: str = Field(description="the file, from this folder")
    most: int = Field(5, description="how many words", ge=1)


def run(input_model):
    with open(input_model.path, encoding="utf-8") as file:
        words = [word.strip(".,;:!?").lower() for word in file.read().split()]
    counts = Counter(word for word in words if len(word) > 3)
    return [{"word": word, "times": times} for word, times in counts.most_common(input_model.most)]
