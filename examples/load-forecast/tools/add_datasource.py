"""Registers a file as a data source of a project."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Optional

from pydantic import BaseModel, ConfigDict, Field

__TOOL_META__ = {
    "name": "add_datasource",
    "description": "Registers a CSV file as a data source of a project. The same file gets the same id again.",
    "dependencies": [],
    "effects": "idempotent",
    "write_paths": ["out"],
    "output_params": ["datasource_id", "datasource_name"],
}

STORE = Path("out/datasources.db")


class InputModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project_id: str = Field(min_length=1)
    file_path: str = Field(description="the CSV file")
    name: Optional[str] = Field(None, description="the file's name if not given")


def run(input_model):
    path = Path(input_model.file_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    # Derived from project and content: a call that is repeated changes nothing.
    identity = hashlib.sha256(f"{input_model.project_id}\n{digest}".encode()).hexdigest()
    datasource = f"ds_{identity[:8]}"
    name = input_model.name or path.stem
    with closing(sqlite3.connect(STORE)) as database, database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS datasources (id TEXT PRIMARY KEY, project TEXT, name TEXT, path TEXT, sha256 TEXT)"
        )
        row = (datasource, input_model.project_id, name, str(path), digest)
        database.execute("INSERT OR REPLACE INTO datasources VALUES (?, ?, ?, ?, ?)", row)
    return {"datasource_id": datasource, "datasource_name": name}
