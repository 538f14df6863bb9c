"""Reads what tool files say about themselves, without running them.

stdin: a line with the lengths of the files, and the files one after the other. stdout: a JSON array with, for each,
{"meta": {...}, "line": N, "lines": {key: N}, "script": TEXT | null} or {"error", "line", "column", "help"}.

Only what is built into the interpreter is imported: modules of the library would take longer to load than many files
take to read.
"""

# What the module `ast` takes its classes from.
import _ast as ast
import gc
import sys

NAME = "__TOOL_META__"
# What stands before each helper module in the text of a tool (helpers.rs).
MODULE = b"\n# selvedge: module "
# What is imported before a tool is, besides Python's own modules.
RUNTIME = {"__main__", "annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection"}
BLOCKS = (ast.If, ast.Try, getattr(ast, "TryStar", ast.Try), ast.With)


class Bad(Exception):
    def __init__(self, message, line=None, column=None, help=None):
        super().__init__(message)
        self.line = line
        self.column = column
        self.help = help


def statements(body):
    """Statements at module level, also those inside if, try and with."""
    for node in body:
        yield node
        if isinstance(node, BLOCKS):
            for part in ("body", "orelse", "finalbody"):
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
    import re

    # As PEP 723 has it.
    block = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
    text = source.decode("utf-8", "replace").replace("\r\n", "\n")
    found = [match for match in block.finditer(text) if match.group("type") == "script"]
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


def own_names(tree, source):
    """No helper module has a name that means something else to whoever runs the tool."""
    taken = RUNTIME.union(getattr(sys, "stdlib_module_names", sys.builtin_module_names))
    for part in source.split(MODULE)[1:]:
        name = part.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
        if name in taken:
            message = "%s.py beside the file has the name of a module that Python or pydantic has: `import %s` means that one"
            help = "rename %s.py if it is a helper module, and what imports it; else move it out of the folder"
            raise Bad(message % (name, name), imported_at(tree, name), None, help % name)


def imported_at(tree, name):
    for node in statements(tree.body):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == name for alias in node.names):
            return node.lineno
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == name:
            return node.lineno
    return None


def names_of(target):
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from names_of(item)


def read(source):
    try:
        # As `ast.parse` does it.
        tree = compile(source, "<tool>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as e:
        version = "%d.%d" % (sys.version_info[0], sys.version_info[1])
        raise Bad("the file is not valid Python %s: %s" % (version, e.msg), e.lineno, e.offset)
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
    own_names(tree, source)
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


def quoted(text):
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)


def written(value):
    """A value as JSON."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, dict):
        return "{%s}" % ",".join(["%s:%s" % (quoted(key), written(part)) for key, part in value.items()])
    if isinstance(value, list):
        return "[%s]" % ",".join([written(part) for part in value])
    return repr(value)


def answer(source):
    """What is to be said about a file, as JSON."""
    try:
        return written(read(source))
    except Bad as e:
        # Where a place is unknown, Python says 0 or less.
        place = [n if n is not None and n > 0 else None for n in (e.line, e.column)]
        return written({"error": str(e), "line": place[0], "column": place[1], "help": e.help})
    except (RecursionError, MemoryError):
        return written({"error": "the file is nested too deeply to be read", "line": None, "column": None})


def main():
    # Trees are made and dropped, one after the other, without cycles.
    gc.disable()
    stdin = sys.stdin.buffer
    answers = [answer(stdin.read(int(length))) for length in stdin.readline().split()]
    sys.stdout.write("[%s]" % ",".join(answers))


main()
