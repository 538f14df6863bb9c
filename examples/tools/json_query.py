"""Values picked out of JSON."""

import json
from typing import Any, Optional

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__TOOL_META__ = {
    "name": "json_query",
    "description": (
        "Evaluates a JMESPath expression over JSON data or JSON text: picks, filters, sorts, reshapes. "
        "Example: items[?price > `10`].{name: name, price: price} | sort_by(@, &price)"
    ),
    "dependencies": ["jmespath>=1.0,<2"],
    "effects": "pure",
    "output_params": ["result", "found"],
}


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    expression: str = Field(min_length=1, description="a JMESPath expression")
    data: Optional[Any] = Field(None, description="the data; this or `text`")
    text: Optional[str] = Field(None, description="JSON text; JSON lines count as an array; this or `data`")
    required: bool = Field(False, description="whether it is an error that nothing is found")

    @field_validator("expression")
    @classmethod
    def is_expression(cls, expression):
        try:
            jmespath.compile(expression)
        except JMESPathError as error:
            raise ValueError(reason(error)) from None
        return expression

    @model_validator(mode="after")
    def one_source(self):
        if ("data" in self.model_fields_set) == (self.text is not None):
            raise ValueError("give `data` or `text`, and not both")
        return self


def reason(error):
    """What is wrong; the lines after the first repeat the expression and point at the place."""
    return str(error).splitlines()[0].rstrip(":")


def parsed(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1:
            try:
                return [json.loads(line) for line in lines]
            except json.JSONDecodeError:
                pass
        place = text[max(0, error.pos - 20) : error.pos + 20]
        raise ValueError(f"the text is no JSON: {error.msg} in line {error.lineno}, at {place!r}") from None


def run(input_model):
    data = input_model.data if input_model.text is None else parsed(input_model.text)
    try:
        result = jmespath.search(input_model.expression, data)
    except JMESPathError as error:
        raise ValueError(f"{input_model.expression!r} does not work on this data: {reason(error)}") from None
    if result is None and input_model.required:
        keys = f"; the data has the keys {', '.join(list(data)[:20])}" if isinstance(data, dict) else ""
        raise ValueError(f"{input_model.expression!r} finds nothing{keys}")
    return {"result": result, "found": result is not None}
