"""A stock list from CSV text."""

import csv
import io

from pydantic import BaseModel, Field

__TOOL_META__ = {
    "name": "parse_stock",
    "description": "Articles of a stock list given as CSV text with the columns sku, name, on_hand, reorder_at, pack, price.",
    "dependencies": [],
    "effects": "pure",
    "output_params": ["articles", "low", "value"],
}


class InputModel(BaseModel):
    text: str = Field(description="the CSV text")


def run(input_model):
    articles = []
    for row in csv.DictReader(io.StringIO(input_model.text)):
        numbers = {key: int(row[key]) for key in ("on_hand", "reorder_at", "pack")}
        articles.append({"sku": row["sku"], "name": row["name"], **numbers, "price": float(row["price"])})
    return {
        "articles": articles,
        "low": [article["sku"] for article in articles if article["on_hand"] < article["reorder_at"]],
        "value": round(sum(article["on_hand"] * article["price"] for article in articles), 2),
    }
