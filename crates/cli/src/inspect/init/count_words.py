"""A tool: its arguments come on stdin as JSON, its result goes to stdout as JSON. Any language will do."""

import json
import sys

arguments = json.load(sys.stdin)
with open(arguments["path"], encoding="utf-8") as file:
    text = file.read()
print(json.dumps({"words": len(text.split()), "lines": len(text.splitlines())}))
