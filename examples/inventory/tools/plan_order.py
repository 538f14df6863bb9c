"""What to order, within a budget."""

import math

from pydantic import BaseModel, Field

__TOOL_META__ = {
    "name": "plan_order",
    "description": "Orders whole packs of the articles that run low, most urgent first, as far as a budget goes.",
    "dependencies": [],
    "effects": "pure",
    "output_params": ["lines", "total", "postponed"],
}


class Article(BaseModel):
    sku: str
    name: str
    on_hand: int
    reorder_at: int
    pack: int = Field(gt=0)
    price: float


class InputModel(BaseModel):
    articles: list[Article]
    low: list[str] = Field(description="the articles to order, by sku")
    budget: float = Field(ge=0)


def run(input_model):
    wanted = [article for article in input_model.articles if article.sku in input_model.low]
    wanted.sort(key=lambda article: article.on_hand / article.reorder_at)
    lines, postponed, total = [], [], 0.0
    for article in wanted:
        # Up to twice the level at which it runs low.
        packs = math.ceil((2 * article.reorder_at - article.on_hand) / article.pack)
        cost = round(packs * article.pack * article.price, 2)
        if total + cost > input_model.budget:
            postponed.append(article.sku)
            continue
        total = round(total + cost, 2)
        lines.append({"sku": article.sku, "name": article.name, "packs": packs, "cost": cost})
    return {"lines": lines, "total": total, "postponed": postponed}
