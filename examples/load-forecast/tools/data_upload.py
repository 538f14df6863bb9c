"""Uploads the file of a data source to the store."""

import csv
import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "data_upload",
    "description": "Uploads the rows of a registered data source to the store; what was uploaded of it before is replaced.",
    "dependencies": [],
    "effects": "idempotent",
    "write_paths": ["out"],
    "output_params": ["upload_status", "record_count"],
}

STORE = Path("out/datasources.db")


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project_id: str = Field(min_length=1)
    datasource_id: str = Field(description="as add_datasource gave it")


def run(input_model):
    with closing(sqlite3.connect(STORE)) as database, database:
        query = "SELECT path, sha256 FROM datasources WHERE id = ? AND project = ?"
        found = database.execute(query, (input_model.datasource_id, input_model.project_id)).fetchone()
        if found is None:
            raise LookupError(f"the project {input_model.project_id} has no data source {input_model.datasource_id}")
        path, digest = found
        data = Path(path).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"{path} has changed since it was registered")
        rows = {}
        for row in csv.DictReader(data.decode("utf-8-sig").splitlines()):
            rows[row["time"]] = float(row["load_mw"]) if row["load_mw"] else None
        database.execute(
            "CREATE TABLE IF NOT EXISTS loads (datasource TEXT, time TEXT, load_mw REAL, PRIMARY KEY (datasource, time))"
        )
        database.execute("DELETE FROM loads WHERE datasource = ?", (input_model.datasource_id,))
        records = [(input_model.datasource_id, time, value) for time, value in rows.items()]
        database.executemany("INSERT INTO loads VALUES (?, ?, ?)", records)
    return {"upload_status": "success", "record_count": len(records)}
