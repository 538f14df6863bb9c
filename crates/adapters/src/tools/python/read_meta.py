"""Reads what tool files say about themselves, without running them.

stdin: a JSON array of paths. stdout: for each, {"meta": {...}, "line": N, "lines": {key: N}, "script": TEXT | null} or
{"error", "line"}.
"""

import ast
import gc
import json
import re
import sys

NAME = "__TOOL_META__"
# As PEP 723 has it.
BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")


class Bad(Exception):
    def __init__(self, message, line=None):
        super().__init__(message)
        self.line = line


def statements(body):
    """Statements at module level, also those inside if, try and with."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if isinstance(node, (ast.If, ast.Try, ast.With)):
                yield from statements(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from statements(handler.body)


def plain(node):
    """A literal as JSON; anything else names the line it is on."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            raise Bad("%s holds a number that JSON has no place for" % NAME, node.lineno)
        if isinstance(value, int) and abs(value) >= 1 << 63:
            raise Bad("%s holds a number that is too large" % NAME, node.lineno)
        if isinstance(value, str) and not well_formed(value):
            raise Bad("%s holds half of a surrogate pair, which is no character" % NAME, node.lineno)
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise Bad("%s holds a %s, which JSON has no place for" % (NAME, type(value).__name__), node.lineno)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [plain(item) for item in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = plain(node.operand)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Dict):
        return {key: value for key, value, _ in pairs(node)}
    raise Bad("%s must be a literal: it is read without running the file" % NAME, getattr(node, "lineno", None))


def well_formed(text):
    try:
        text.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False


def script(source):
    """The text of the file's block of inline script metadata, if it has one."""
    if b"# /// " not in source:
        return None
    text = source.decode("utf-8", "replace").replace("\r\n", "\n")
    found = [match for match in BLOCK.finditer(text) if match.group("type") == "script"]
    if len(found) > 1:
        line = text.count("\n", 0, found[1].start()) + 1
        raise Bad("the file has two blocks `# /// script`", line)
    lines = found[0].group("content").splitlines() if found else []
    return "\n".join(line[2:] for line in lines) if found else None


def pairs(node):
    seen = set()
    for key, value in zip(node.keys, node.values):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            raise Bad("the keys of %s must be strings" % NAME, (key or value).lineno)
        if key.value in seen:
            raise Bad("%s has the key %r twice" % (NAME, key.value), key.lineno)
        seen.add(key.value)
        yield key.value, plain(value), key.lineno


def names_of(target):
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from names_of(item)


def read(path):
    with open(path, "rb") as file:
        source = file.read()
    try:
        tree = ast.parse(source, path)
    except SyntaxError as e:
        raise Bad("the file is not valid Python %d.%d: %s" % (sys.version_info[0], sys.version_info[1], e.msg), e.lineno)
    except ValueError as e:
        raise Bad("the file is not valid Python: %s" % e)
    bound, found = {}, None
    for node in statements(tree.body):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            bound[node.name] = node
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                bound[alias.asname or alias.name] = node
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == NAME:
                raise Bad("%s is changed after it was set: it must be one literal" % NAME, node.lineno)
            for name in names_of(target):
                bound[name] = node
                if name == NAME:
                    if found is not None:
                        raise Bad("%s is set twice (first on line %d)" % (NAME, found.lineno), node.lineno)
                    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(target, ast.Name):
                        raise Bad("%s must be one literal: it is read without running the file" % NAME, node.lineno)
                    found = node
    if found is None:
        raise Bad("the file has no %s" % NAME)
    if not isinstance(found.value, ast.Dict):
        raise Bad("%s must be a literal dictionary: it is read without running the file" % NAME, found.lineno)
    entries = list(pairs(found.value))
    if "InputModel" not in bound:
        raise Bad("the file has no `class InputModel(BaseModel)`")
    if "run" not in bound:
        raise Bad("the file has no `def run(input_model)`")
    run = bound["run"]
    if isinstance(run, (ast.FunctionDef, ast.AsyncFunctionDef)):
        args = run.args
        required = len(args.args) + len(args.posonlyargs) - len(args.defaults)
        if required > 1 or (required < 1 and not args.args and not args.posonlyargs and args.vararg is None):
            raise Bad("`run` must take one argument, the InputModel", run.lineno)
    return {
        "meta": {key: value for key, value, _ in entries},
        "line": found.lineno,
        "lines": {key: line for key, _, line in entries},
        "script": script(source),
    }


def main():
    # Trees are made and dropped, one after the other, without cycles.
    gc.disable()
    results = []
    for path in json.load(sys.stdin):
        try:
            results.append(read(path))
        except Bad as e:
            results.append({"error": str(e), "line": e.line})
        except (RecursionError, MemoryError):
            results.append({"error": "the file is nested too deeply to be read", "line": None})
        except OSError as e:
            results.append({"error": "the file cannot be read: %s" % e.strerror, "line": None})
    sys.stdout.write(json.dumps(results))


main()
