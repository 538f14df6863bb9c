"""Runs a tool file in its own environment: once in a fresh interpreter, or in a child of a warm one (server.py).

stdin, a socket: one line of JSON {"mode": "schema" | "call", "file": PATH, "shown": PATH, "module": NAME, "bytes": SIZE,
"env": {NAME: VALUE}}, then the content of the file, SIZE bytes, then, for a call, the input. The file itself need not be in
reach; in tracebacks it is called what its author calls it, `shown`.
On the same socket: {"ok": VALUE} or {"error": {"type", "message", ...}}. stdout and stderr are for what the tool prints.
"""

import asyncio
import atexit
import importlib.machinery
import importlib.util
import inspect
import json
import linecache
import marshal
import os
import sys
import threading
import traceback


class Refused(Exception):
    def __init__(self, kind, message, **more):
        super().__init__(message)
        self.error = {"type": kind, "message": message, **more}


WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=_-.~%"


def short(text, most=2000):
    """The beginning and the end of a text, in whole words: one half of a key would not be seen as one."""
    if len(text) <= most:
        return text
    half = most // 2
    begin, end = text[:half], text[-half:]
    begin = begin.rstrip(WORD) if text[half] in WORD else begin
    end = end.lstrip(WORD) if text[-half - 1] in WORD else end
    return begin + " … " + end


def said(e):
    """The exception as one line, even where its own text cannot be made."""
    if isinstance(e, SystemExit):
        return "the tool called sys.exit(%r)" % (e.code,)
    try:
        text = str(e)
    except Exception:
        text = "(its text cannot be shown)"
    return short("%s: %s" % (type(e).__name__, text) if text else type(e).__name__)


def from_the_tool(told, most):
    """Leaves out the frames before the tool's first one, of an exception and of those that led to it: they are ours."""
    if told is None or most == 0:
        return
    own = {given.shown for given in Given.all.values()}
    frames = list(told.stack)
    first = next((at for at, frame in enumerate(frames) if frame.filename in own), None)
    if first is None:
        frames = [f for f in frames if f.filename != "<string>" and not f.filename.startswith("<frozen ")]
    else:
        frames = frames[first:]
    told.stack = traceback.StackSummary.from_list(frames)
    for other in [told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or [])[:most]]:
        from_the_tool(other, most - 1)


def failed(e, what=""):
    """Any exception of the tool's own code, with the end of its traceback."""
    try:
        for given in Given.all.values():
            # The lines as they were given: the file may say something else by now.
            lines = importlib.util.decode_source(given.source).splitlines(True)
            linecache.cache[given.shown] = (len(given.source), None, lines, given.shown)
        told = traceback.TracebackException(type(e), e, e.__traceback__)
        from_the_tool(told, 20)
        trace = "".join(told.format())
        for given in Given.all.values():
            trace = trace.replace(given.copy, given.shown) if given.copy else trace
        trace = short(trace, 4000)
    except Exception:
        trace = ""
    return Refused("tool_execution_error", what + said(e), traceback=trace, **missing(e))


def missing(e):
    """The variable that a tool has looked for in the environment, and that is not there."""
    last = e.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    sought = last is not None and last.tb_frame.f_code is type(os.environ).__getitem__.__code__
    return {"variable": str(e.args[0])} if sought and isinstance(e, KeyError) and e.args else {}


class Given(importlib.machinery.SourceFileLoader):
    """A module whose source came with the call; tracebacks and `inspect` see it all the same."""

    # What an earlier call of the same version has compiled, who is told what this one does (server.py), and the file that
    # other processes import.
    compiled = share = copy = None
    # Those of this process by name: the tool, and the helper modules that its text has in it.
    all = {}

    def __init__(self, module, file, source, shown):
        super().__init__(module, file)
        self.source, self.shown = source, shown
        Given.all[module] = self

    def get_data(self, path):
        if path != self.path:
            raise OSError("no such file")
        return self.source

    def get_code(self, module):
        if Given.compiled is None:
            Given.compiled = {module: self.compiled_here()}
            for name, helper in Given.all.items():
                try:
                    Given.compiled.setdefault(name, name != module and helper.compiled_here())
                except Exception:
                    # It is told of where it is imported, if it is.
                    Given.compiled.pop(name, None)
            if Given.share is not None:
                Given.share(Given.compiled)
        return Given.compiled.get(module) or self.compiled_here()

    def compiled_here(self):
        return self.source_to_code(self.source, self.shown)


class Helpers:
    """Finds the helper modules of the tool, ahead of packages, and behind what Python itself has."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is not None or name not in Given.all or name in Helpers.pythons:
            return None
        return importlib.util.spec_from_file_location(name, Given.all[name].path, loader=Given.all[name])

    pythons = {*getattr(sys, "stdlib_module_names", sys.builtin_module_names), "pydantic"}


# What stands before each module in the text of a tool (helpers.rs), and before each line of one.
MODULE, LINE = b"\n# selvedge: module ", b"#|"


def is_taken(name):
    """Whether Python or a package has a module of this name, which others may need."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return True
    # What has no origin is a mere folder.
    return found is not None and found.origin is not None


def helpers(file, source, shown, new):
    """Takes the helper modules out of the comments that they are."""
    for part in source.split(MODULE)[1:]:
        name, *lines = part.split(b"\n")
        name = name.decode("utf-8", "replace").strip()
        if new and is_taken(name):
            message = "%s.py beside it has the name of a module that a package of its environment has, which others may need"
            raise Refused("tool_execution_error", message % name + ": rename %s.py, and what imports it" % name)
        text = b"\n".join(line[len(LINE) :] for line in lines if line.startswith(LINE))
        beside = lambda path: os.path.join(os.path.dirname(path), name + ".py")
        Given(name, beside(file), text, beside(shown))
        if name not in Helpers.pythons:
            # A package of that name may have been imported ahead.
            sys.modules.pop(name, None)
    sys.meta_path.insert(0, Helpers)


def forking():
    """Since 3.14, multiprocessing starts processes from a server. It would have to listen on a socket, which there is none of without
    the network, and to import the tool's module, which lies nowhere: they are forked, as before."""
    if sys.version_info >= (3, 14):
        from multiprocessing import context

        context._default_context._default_context = context._concrete_contexts["fork"]


def importable():
    """Writes the tool and its helper modules where processes that start anew find them (A-33): those of `spawn`, `forkserver` and
    joblib import what they are given by name."""
    folder = os.path.join(os.environ.get("TMPDIR") or ".", ".tool-modules")
    try:
        os.mkdir(folder, 0o700)
        for name, given in Given.all.items():
            if name not in Helpers.pythons:
                given.copy = os.path.join(folder, name + ".py")
                with open(given.copy, "wb") as copy:
                    copy.write(given.source)
    except OSError:
        # Who needs it is told by Python that there is no such module.
        return
    # Behind packages, and told to those processes with the rest.
    sys.path.append(folder)


def load(file, module, source, shown, new):
    given = Given(module, file, source, shown)
    if MODULE in source:
        helpers(file, source, shown, new)
    if not new:
        importable()
    spec = importlib.util.spec_from_file_location(module, file, loader=given)
    tool = importlib.util.module_from_spec(spec)
    sys.modules[module] = tool
    try:
        spec.loader.exec_module(tool)
    except BaseException as e:
        raise failed(e, "the file cannot be loaded: ")
    from pydantic import BaseModel

    model = getattr(tool, "InputModel", None)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise Refused("tool_execution_error", "InputModel is not a class derived from pydantic's BaseModel")
    if not callable(getattr(tool, "run", None)):
        raise Refused("tool_execution_error", "run is not a function")
    return tool


def schema(tool):
    try:
        return tool.InputModel.model_json_schema()
    except BaseException as e:
        raise failed(e, "InputModel has no JSON schema: ")


def call(tool, body):
    from pydantic import ValidationError

    try:
        value = tool.InputModel.model_validate_json(body)
    except ValidationError as e:
        errors = e.errors(include_url=False, include_context=False, include_input=False)
        details = [{"at": ".".join(map(str, d["loc"])), "message": d["msg"], "type": d["type"]} for d in errors]
        text = "; ".join("%s: %s" % (d["at"], d["message"]) if d["at"] else d["message"] for d in details)
        raise Refused("input_error", short(text), details=details[:20])
    except BaseException as e:
        raise failed(e, "InputModel refused the input: ")
    try:
        result = tool.run(value)
        if inspect.isawaitable(result):

            async def wait():
                return await result

            result = asyncio.run(wait())
        return result
    except BaseException as e:
        raise failed(e)


def main(patience=None):
    """Answers, and ends this process; what a tool left to be done at the end has `patience` seconds, or until somebody else
    ends it."""
    process = os.getpid()
    data = sys.stdin.buffer.read()
    # The answer gets a descriptor of its own, not inherited by children; there is nothing more to be read.
    answer, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    head, _, body = data.partition(b"\n")
    head = json.loads(head)
    source, body = body[: head["bytes"]], body[head["bytes"] :]
    os.environ.update(head["env"])
    # Who watches sees lines as they come.
    sys.stdout.reconfigure(line_buffering=True)
    forking()
    try:
        # A version that is called has been asked for its schema before, and stays what it was.
        tool = load(head["file"], head["module"], source, head["shown"], head["mode"] == "schema")
        result = encoded(schema(tool) if head["mode"] == "schema" else call(tool, body))
    except Refused as e:
        # Half a character of UTF-16, which a text of Python may be, is none.
        result = json.dumps({"error": e.error}, ensure_ascii=False).encode("utf-8", "replace")
    flush()
    if os.getpid() != process:
        # A child that the tool forked and let run on: there is one answer, and it is the parent's.
        os._exit(0)
    with os.fdopen(answer, "wb") as out:
        out.write(result)
    if patience is not None:
        last = threading.Timer(patience, os._exit, [0])
        last.daemon = True
        last.start()
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    finally:
        flush()
        os._exit(0)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
