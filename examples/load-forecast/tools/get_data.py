"""The hourly load of a data source, from the store."""

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "get_data",
    "description": "The uploaded load of a data source as JSON text: the first hour, and a value for each hour from there on, null where none is.",
    "dependencies": [],
    "effects": "read",
    "output_params": ["data_json", "record_count"],
}

STORE = Path("out/datasources.db")


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    datasource_id: str = Field(description="as add_datasource gave it")


def run(input_model):
    with closing(sqlite3.connect(f"file:{STORE}?mode=ro", uri=True)) as database:
        query = "SELECT time, load_mw FROM loads WHERE datasource = ? ORDER BY time"
        values = {datetime.fromisoformat(time): value for time, value in database.execute(query, (input_model.datasource_id,))}
    if not values:
        raise LookupError(f"nothing was uploaded for the data source {input_model.datasource_id}")
    first = min(values)
    hours = (max(values) - first) // timedelta(hours=1) + 1
    series = [values.get(first + timedelta(hours=hour)) for hour in range(hours)]
    data = {"start": first.isoformat(timespec="minutes"), "values": series}
    return {"data_json": json.dumps(data, separators=(",", ":")), "record_count": len(values)}
