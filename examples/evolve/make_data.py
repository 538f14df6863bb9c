"""Writes tasks.jsonl, script.yaml and the files below data/: a small world in which a library evolves.

Seventy-two tasks in six families. The script stands in for all models: managers that ask for a tool where none is listed, a coder whose first files
have faults of known kinds, also where it makes one tool of two, and executors that call the tools for real. An answer is only given where a tool has
really given it.
"""

import json
from datetime import date, timedelta
from pathlib import Path
from textwrap import dedent, indent

HERE = Path(__file__).parent
DATA = HERE / "data"
EACH = 12


def out(fields):
    """A tool's output, as it stands in a conversation."""
    return json.dumps(fields, separators=(",", ":"))


def dates(n):
    start = date(2024, 1, 5) + timedelta(days=23 * n)
    # Every fourth interval runs backwards: the first version of the tool takes none.
    end = start + timedelta(days=-17 - n if n % 4 == 0 else 30 + 11 * n)
    question = f"How many days lie between {start} and {end}, whichever is the earlier?"
    arguments = {"start": str(start), "end": str(end)}
    days = abs((end - start).days)
    return question, arguments, {**arguments, "days": days}, days, []


def units(n):
    factors = {"mile": 1609.344, "foot": 0.3048, "inch": 0.0254, "yard": 0.9144}
    unit = list(factors)[n % 4]
    value = 3.0 + 7 * n
    metres = round(value * factors[unit], 4)
    question = f"How many metres are {value:g} units of the length {unit}?"
    arguments = {"value": value, "unit": unit}
    return question, arguments, {**arguments, "metres": metres}, metres, []


def tables(n):
    rows = [(f"item{i}", (i * 7 + n * 13) % 90 + 10) for i in range(6 + n % 3)]
    name = f"data/stock-{n:02}.csv"
    # Every fourth file has a cell that is empty.
    cells = [(item, "" if n % 4 == 0 and i == 1 else count) for i, (item, count) in enumerate(rows)]
    (HERE / name).write_text("item,count\n" + "".join(f"{item},{count}\n" for item, count in cells))
    total = sum(count for _, count in cells if count != "")
    question = f"What do the counts in {name} add up to?"
    arguments = {"path": name, "column": "count"}
    return question, arguments, {**arguments, "total": total}, total, [name]


def text(n):
    words = ["pump", "valve", "Pump", "meter", "pipe"] if n % 3 == 0 else ["pump", "valve", "meter", "pipe"]
    said = [words[(i * 3 + n) % len(words)] for i in range(20 + n)]
    name = f"data/notes-{n:02}.txt"
    (HERE / name).write_text(" ".join(said) + "\n")
    count = sum(word.lower() == "pump" for word in said)
    question = f"How often does the word pump stand in {name}, in capitals or not?"
    arguments = {"path": name, "word": "pump"}
    return question, arguments, {**arguments, "count": count}, count, [name]


def geometry(n):
    width, height = 4 + n, 3 + n % 5
    corners = [[0, 0], [width, 0], [width, height], [0, height]]
    if n % 4 == 0:
        corners.reverse()
    name = f"data/plot-{n:02}.json"
    (HERE / name).write_text(json.dumps({"corners": corners}) + "\n")
    area = float(width * height)
    question = f"What is the area of the plot of land in {name}?"
    return question, {"path": name}, {"path": name, "area": area}, area, [name]


def numbers(n):
    below = 20_000 + 1_000 * n
    sieve = bytearray([1]) * below
    for p in range(2, int(below**0.5) + 1):
        if sieve[p]:
            sieve[p * p :: p] = bytes(len(range(p * p, below, p)))
    primes = sum(sieve) - 2
    question = f"How many prime numbers lie below {below}?"
    return question, {"below": below}, {"below": below, "primes": primes}, primes, []


HEAD = '''
"""{description}"""
{imports}
from pydantic import BaseModel, Field

__TOOL_META__ = {{
    "name": "{name}",
    "description": "{description}",
    "dependencies": [],
    "output_params": {outputs},
    "effects": "{effects}",
    "timeout": 10,
}}


class InputModel(BaseModel):
{fields}


def run(input_model):
{body}
'''

FAMILIES = {
    "dates": {
        "of": dates,
        "tool": "days_between",
        "mark": "How many days lie between",
        "description": "Counts the days between two ISO dates, whichever is the earlier.",
        "imports": "from datetime import date\n",
        "outputs": {"start": {"type": "string"}, "end": {"type": "string"}, "days": {"type": "integer"}},
        "effects": "pure",
        "fields": 'start: str = Field(description="the one date, as in 2024-01-08")\nend: str = Field(description="the other date")',
        "bad": """
            days = (date.fromisoformat(input_model.end) - date.fromisoformat(input_model.start)).days
            if days < 0:
                raise ValueError("the end lies before the start")
            return {"start": input_model.start, "end": input_model.end, "days": days}
        """,
        "good": """
            days = abs((date.fromisoformat(input_model.end) - date.fromisoformat(input_model.start)).days)
            return {"start": input_model.start, "end": input_model.end, "days": days}
        """,
        "fault": "the end lies before the start",
    },
    "units": {
        "of": units,
        "tool": "to_metres",
        "mark": "How many metres are",
        "description": "Converts a length in mile, yard, foot or inch to metres.",
        "imports": "",
        "outputs": {"value": {"type": "number"}, "unit": {"type": "string"}, "metres": {"type": "number"}},
        "effects": "pure",
        "fields": 'value: float = Field(description="how many")\nunit: str = Field(description="mile, yard, foot or inch")',
        "bad": """
            factor = {"mile": 1609.344, "foot": 0.3048, "inch": 0.0254, "yard": 0.9144}[input_model.unit]
            return {"value": input_model.value, "unit": input_model.unit, "metres": f"{input_model.value * factor:.4f} m"}
        """,
        "good": """
            factor = {"mile": 1609.344, "foot": 0.3048, "inch": 0.0254, "yard": 0.9144}[input_model.unit]
            return {"value": input_model.value, "unit": input_model.unit, "metres": round(input_model.value * factor, 4)}
        """,
        "fault": "metres",
    },
    "tables": {
        "of": tables,
        "tool": "column_total",
        "mark": "What do the counts in",
        "description": "Adds up a column of whole numbers in a CSV file with a header. Empty cells count as nothing.",
        "imports": "import csv\nfrom pathlib import Path\n",
        "outputs": {"path": {"type": "string"}, "column": {"type": "string"}, "total": {"type": "integer"}},
        "effects": "read",
        "fields": 'path: str = Field(description="the CSV file")\ncolumn: str = Field(description="the column")',
        "bad": """
            with Path(input_model.path).open(newline="", encoding="utf-8") as file:
                total = sum(int(row[input_model.column]) for row in csv.DictReader(file))
            return {"path": input_model.path, "column": input_model.column, "total": total}
        """,
        "good": """
            with Path(input_model.path).open(newline="", encoding="utf-8") as file:
                cells = [row[input_model.column].strip() for row in csv.DictReader(file)]
            total = sum(int(cell) for cell in cells if cell)
            return {"path": input_model.path, "column": input_model.column, "total": total}
        """,
        "fault": "invalid literal for int",
    },
    "text": {
        "of": text,
        "tool": "count_word",
        "mark": "How often does the word pump",
        "description": "Counts how often a word stands in a text file, in capitals or not.",
        "imports": "import re\nfrom pathlib import Path\n",
        "outputs": {"path": {"type": "string"}, "word": {"type": "string"}, "count": {"type": "integer"}},
        "effects": "read",
        "fields": 'path: str = Field(description="the text file")\nword: str = Field(description="the word")',
        "bad": """
            words = re.findall(r"\\w+", Path(input_model.path).read_text(encoding="utf-8"))
            return {"path": input_model.path, "word": input_model.word, "count": words.count(input_model.word)}
        """,
        "good": """
            words = re.findall(r"\\w+", Path(input_model.path).read_text(encoding="utf-8").lower())
            return {"path": input_model.path, "word": input_model.word, "count": words.count(input_model.word.lower())}
        """,
        "fault": None,
    },
    "geometry": {
        "of": geometry,
        "tool": "polygon_area",
        "mark": "What is the area of the plot",
        "description": "Computes the area of the polygon whose corners stand in a JSON file, in whichever direction they go round.",
        "imports": "import json\nfrom pathlib import Path\n",
        "outputs": {"path": {"type": "string"}, "area": {"type": "number"}},
        "effects": "read",
        "fields": 'path: str = Field(description="the JSON file, with `corners`: [[x, y], ...]")',
        "bad": """
            corners = json.loads(Path(input_model.path).read_text(encoding="utf-8"))["corners"]
            twice = sum(x * v - u * y for (x, y), (u, v) in zip(corners, corners[1:] + corners[:1]))
            return {"path": input_model.path, "area": twice / 2}
        """,
        "good": """
            corners = json.loads(Path(input_model.path).read_text(encoding="utf-8"))["corners"]
            twice = sum(x * v - u * y for (x, y), (u, v) in zip(corners, corners[1:] + corners[:1]))
            return {"path": input_model.path, "area": abs(twice) / 2}
        """,
        "fault": None,
        "merged": "copies",
    },
    "numbers": {
        "of": numbers,
        "tool": "count_primes",
        "mark": "How many prime numbers lie below",
        "description": "Counts the prime numbers below a number.",
        "imports": "",
        "outputs": {"below": {"type": "integer"}, "primes": {"type": "integer"}},
        "effects": "pure",
        "fields": 'below: int = Field(description="the number")',
        "bad": """
            primes = 0
            for n in range(2, input_model.below):
                # As many divisors as there are numbers, many times over.
                primes += all(n % d for _ in range(1000) for d in range(2, n)) if n > 3 else 1
            return {"below": input_model.below, "primes": primes}
        """,
        "good": """
            sieve = bytearray([1]) * max(input_model.below, 2)
            for p in range(2, int(len(sieve) ** 0.5) + 1):
                if sieve[p]:
                    sieve[p * p :: p] = bytes(len(range(p * p, len(sieve), p)))
            return {"below": input_model.below, "primes": sum(sieve) - 2}
        """,
        "fault": "timeout",
        # Its calls that failed are no evidence, and who repeats a slow one waits for it.
        "merged": "good",
    },
}


def source(family, which, name=None):
    """The file that the coder writes."""
    body = indent(dedent(family[which]).strip(), "    ")
    return HEAD.format(
        name=name or family["tool"],
        description=family["description"],
        imports="\n" + family["imports"] if family["imports"] else "",
        outputs=json.dumps(family["outputs"]),
        effects=family["effects"],
        fields=indent(family["fields"], "    "),
        body=body,
    ).lstrip()


def copies(family):
    """One tool for two that is none: both files as they are, and whichever works."""
    both = [source(family, "good", name) for name in (family["tool"], family["tool"] + "_2")]
    body = """
        for text in COPIES:
            file = {}
            exec(text, file)
            try:
                return file["run"](file["InputModel"](**input_model.model_dump()))
            except Exception as error:
                last = error
        raise last
    """
    return source({**family, "copies": body}, "copies") + f"\n\nCOPIES = {both!r}\n"


def fenced(text):
    return "```python\n" + text + "```\n"


RULES = []


def rule(when, reply, tokens=(400, 60)):
    RULES.append({"when": when, "reply": {**reply, "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]}}})


def managers(family, copy):
    """Uses what is listed, and asks for what is not. The second task of a family in the first batch asks for a copy of what the first one builds."""
    tool, mark = family["tool"], family["mark"]
    use = {"required_tool_names": [tool], "tool_usage_guidance": f"Call {tool} once.", "tool_requests": []}
    rule({"node": "manager", "matches": f"(?s)<task>.*{mark}.*<tools>.*\\b{tool}\\b"}, {"json": use})
    for question, name in [(copy, f"{tool}_2"), (mark, tool)]:
        request = {"name": name, "description": family["description"]}
        ask = {"required_tool_names": [], "tool_usage_guidance": f"Call {name} once.", "tool_requests": [request]}
        rule({"node": "manager", "contains": question}, {"json": ask})


def coders(family):
    """First a file with a fault; then, told of a call that failed, one without. So it is where one tool is made of two that do the same."""
    tool = family["tool"]
    merge = f"(?s)Several tools, each one Python file.*<name>\n{tool}\n"
    one = {**family, "description": family["description"] + " It does the work of two that were there."}
    first = family.get("merged", "bad")
    if first != "good":
        rule({"node": "write", "matches": merge + ".*<errors>\n[^\n<]"}, {"text": fenced(source(one, "good"))}, (1700, 320))
    file = copies(one) if first == "copies" else source(one, first)
    rule({"node": "write", "matches": merge}, {"text": fenced(file)}, (1500, 320))
    for name in (f"{tool}_2", tool):
        rule({"node": "write", "contains": f"<name>\n{name}\n"}, {"text": fenced(source(family, "bad", name))}, (900, 300))
        rule({"node": "write", "contains": f'"name": "{name}"'}, {"text": fenced(source(family, "good", name))}, (1200, 320))


def executors(family, n, question, arguments, given, answer):
    tool = family["tool"]
    said = f"{tool} gives {answer} for number {n}."
    for name in (f"{tool}_2", tool):
        call = {"tool_calls": [{"name": name, "arguments": arguments}]}
        rule({"node": "executor", "matches": f"(?s)Call {name} once.*{question.replace('?', chr(92) + '?')}"}, call)
    rule({"node": "executor", "contains": out(given)[1:-1], "has_tool_result": True}, {"text": said})
    final = {"final_answer": str(answer), "reasoning_summary": f"{tool} has computed it."}
    rule({"node": "integrate", "contains": said}, {"json": final})


def classes(family, given):
    """What a call that worked shows: whether what came out is what the file says."""
    rule({"node": "class", "contains": out(given)[1:-1]}, {"json": {"class": "Success", "reason": "It is what the input asks for."}}, (300, 20))


def main():
    DATA.mkdir(exist_ok=True)
    tasks, made = [], {name: [family["of"](n) for n in range(EACH)] for name, family in FAMILIES.items()}
    for n in range(EACH):
        for name in FAMILIES:
            question, _, _, answer, files = made[name][n]
            task = {"task_id": f"{name}-{n:02}", "question": question, "answer": answer}
            tasks.append({**task, "files": files} if files else task)
    for name, family in FAMILIES.items():
        managers(family, made[name][1][0])
        coders(family)
        for n, (question, arguments, given, answer, _) in enumerate(made[name]):
            executors(family, n, question, arguments, given, answer)
            classes(family, given)
    same = [{"suggested_master_tool_name": one["tool"], "tool_names": [one["tool"], one["tool"] + "_2"]} for one in FAMILIES.values()]
    rule({"node": "group"}, {"json": {"consolidated_tool_clusters": same}}, (600, 120))
    wrong = {"class": "Execution Failure", "reason": "It is not what the description says for this input."}
    rule({"node": "class"}, {"json": wrong}, (300, 20))
    rule({"node": "judge"}, {"json": {"status": "FINISH", "reason": "The response has the figure."}}, (200, 20))
    failed = {"final_answer": "It could not be computed.", "reasoning_summary": "No tool gave it."}
    rule({"node": "integrate"}, {"json": failed}, (200, 20))
    (HERE / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    lines = ["# Written by make_data.py: replies that stand in for all models.\n"]
    lines += [f"- {json.dumps(one, ensure_ascii=False)}\n" for one in RULES]
    (HERE / "script.yaml").write_text("".join(lines))


if __name__ == "__main__":
    main()
