//! Python tools: calls, their limits and their failures (A-08, A-20, A-21, E-12, E-13, E-16).

use crate::world::{World, anyone, call, call_within, context, eventually, fault, mark, request};
use selvedge_engine::FaultKind::{ExecutionFailure, InputError, LimitExceeded, Timeout};
use selvedge_runtime::ports::{CallContext, Delta, Tools};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outputs_are_the_tools_json_values() {
    let world = World::new();
    world.tool(
        "model",
        "",
        "class Out(BaseModel):\n    b: int\n    a: str\ndef run(i):\n    return Out(b=i.x, a='é')",
    );
    world.tool("plain", "", "def run(i):\n    return [1, 2.5, None, True, {'k': i.text}]");
    world.tool("mixed", "", "def run(i):\n    return {'models': [i]}");
    world.tool(
        "later",
        "",
        "import asyncio\nasync def run(i):\n    await asyncio.sleep(0.01)\n    return 'done'",
    );
    world.tool("nothing", "", "def run(i):\n    print('a line')\n    sys.stdout.flush()");
    world.tool("dumps", "", "def run(i):\n    return json.dumps({'a': 1})");
    let tools = world.ready().await;
    let model = call(&tools, "model", json!({"x": 3})).await.unwrap();
    assert_eq!(model.to_string(), r#"{"b":3,"a":"é"}"#, "keys in the tool's order (E-24)");
    let plain = call(&tools, "plain", json!({"text": "\u{1F600}\n\""})).await.unwrap();
    assert_eq!(plain, json!([1, 2.5, null, true, {"k": "\u{1F600}\n\""}]));
    assert_eq!(
        call(&tools, "mixed", json!({"x": 1})).await.unwrap(),
        json!({"models": [{"x": 1, "text": ""}]})
    );
    assert_eq!(call(&tools, "later", json!({})).await.unwrap(), json!("done"));
    assert_eq!(call(&tools, "nothing", json!({})).await.unwrap(), Value::Null, "prints are no output");
    assert_eq!(call(&tools, "dumps", json!({})).await.unwrap(), json!("{\"a\": 1}"), "a string stays one");
    eventually("scratch folders are removed", || world.scratch_is_empty()).await;
}

/// What A-32 says of values that JSON has no words for.
const FORMS: &str = "
import collections, dataclasses, datetime as d, decimal, enum, pathlib, uuid
Point = collections.namedtuple('Point', 'x y')
class Colour(enum.Enum):
    RED = 'red'
@dataclasses.dataclass
class Row:
    when: object
    price: object
class Out(BaseModel):
    at: d.datetime
class Scalar:
    # As NumPy's scalars look.
    ndim = 0
    class dtype:
        kind = 'f'
    def __init__(self, value):
        self.value = value
    def item(self):
        return self.value
    def tolist(self):
        return self.value
class Vector(Scalar):
    ndim = 1
def run(i):
    utc = d.datetime(2024, 1, 2, 3, 4, 5, tzinfo=d.timezone.utc)
    times = [utc, d.datetime(2024, 1, 2), d.date(2024, 1, 2), d.time(3, 4), d.timedelta(days=1, hours=2, seconds=.5), d.timedelta()]
    texts = [decimal.Decimal('1.50'), pathlib.Path('/a/b'), uuid.UUID(int=1), b'\\xc3\\xa9']
    lists = [{3, 1, 2}, frozenset('ba'), (1, 2)]
    objects = [Row(d.date(2024, 1, 2), Point(1, {2})), Colour.RED, Out(at=utc), Scalar(1.5), Vector([1, 2])]
    return {'times': times, 'texts': texts, 'lists': lists, 'objects': objects, Colour.RED: {1: True, None: 2}}
";

/// A-32: values of Python's own types have one form each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a32_values_of_usual_types_have_one_form_each() {
    let world = World::new();
    world.tool("forms", "", FORMS);
    let rows = "def run(i):\n    return {'rows': [1, {'price': float(i.text)}]}";
    world.tool("rows", "", rows);
    world.tool("unknown", "", "def run(i):\n    return [{'odd key': object()}]");
    world.tool("twice", "", "def run(i):\n    return {'a': {1: 'x', '1': 'y'}}");
    let tools = world.ready().await;
    let expected = json!({
        "times": ["2024-01-02T03:04:05Z", "2024-01-02T00:00:00", "2024-01-02", "03:04:00", "P1DT2H0.5S", "PT0S"],
        "texts": ["1.50", "/a/b", "00000000-0000-0000-0000-000000000001", "é"],
        "lists": [[1, 2, 3], ["a", "b"], [1, 2]],
        "objects": [
            {"when": "2024-01-02", "price": {"x": 1, "y": [2]}}, "red", {"at": "2024-01-02T03:04:05Z"}, 1.5, [1, 2],
        ],
        "red": {"1": true, "null": 2},
    });
    assert_eq!(call(&tools, "forms", json!({})).await.unwrap(), expected);
    for (name, text, part) in [
        ("rows", "nan", "$.rows[1].price: NaN is no JSON"),
        ("rows", "-inf", "$.rows[1].price: -Infinity is no JSON"),
        ("unknown", "", "$[0][\"odd key\"]: a value of the type object is no JSON"),
        ("twice", "", "$.a: two of its keys are \"1\" as a text"),
    ] {
        let failed =
            fault(call(&tools, name, json!({"text": text})).await, ExecutionFailure, "tool_execution_error");
        assert!(failed.message.contains(part), "{name}: {}", failed.message);
    }
}

/// A-33: processes that start anew import what they are given, the tool's helper modules as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a33_processes_that_start_anew_find_the_tool() {
    let world = World::new();
    std::fs::create_dir_all(world.path("tools")).unwrap();
    std::fs::write(world.path("tools/doubling.py"), "def double(n):\n    return 2 * n\n").unwrap();
    let body = "import multiprocessing\nfrom doubling import double\ndef more(n):\n    return double(n) + 1\ndef bad(n):\n    \
                raise ValueError('no %d' % n)\ndef run(i):\n    with multiprocessing.get_context('spawn').Pool(2) as pool:\n        \
                return pool.map(bad if i.text else more, [1, 2])";
    world.tool("spawns", "", body);
    let tools = world.ready().await;
    assert_eq!(call(&tools, "spawns", json!({})).await.unwrap(), json!([3, 5]));
    let failed = call(&tools, "spawns", json!({"text": "bad"})).await;
    let failed = fault(failed, ExecutionFailure, "tool_execution_error");
    assert!(failed.message.contains("ValueError: no 1"), "{}", failed.message);
    let trace = failed.cause.unwrap()["error"]["traceback"].to_string();
    assert!(trace.contains("spawns.py") && !trace.contains(".tool-modules"), "{trace}");
    eventually("scratch folders are removed", || world.scratch_is_empty()).await;
}

/// A-32, A-33: with the libraries themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a33_numpy_and_joblib_work_as_they_are() {
    let world = World::new();
    let body = "import joblib, numpy\ndef square(n):\n    return n * n\ndef run(i):\n    \
                squares = joblib.Parallel(n_jobs=2)(joblib.delayed(square)(n) for n in [1, 2, 3])\n    \
                numbers = [numpy.float64(1.5), numpy.int32(3), numpy.bool_(True), numpy.array([[1, 2], [3, 4]])]\n    \
                times = [numpy.datetime64('2024-01-02'), numpy.datetime64('2024-01-02T03:04:05.5', 'ns'), numpy.timedelta64(5, 's')]\n    \
                return [squares, numbers, times, numpy.array([1.0, numpy.nan if i.text else 2.0])]";
    world.tool("numbers", "", body);
    let file = world.path("tools/numbers.py");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("'dependencies': []", "'dependencies': ['numpy', 'joblib']")).unwrap();
    let tools = world.ready().await;
    let expected = json!([
        [1, 4, 9],
        [1.5, 3, true, [[1, 2], [3, 4]]],
        ["2024-01-02", "2024-01-02T03:04:05.500000", "PT5S"],
        [1.0, 2.0],
    ]);
    assert_eq!(call(&tools, "numbers", json!({})).await.unwrap(), expected);
    let failed = call(&tools, "numbers", json!({"text": "nan"})).await;
    let failed = fault(failed, ExecutionFailure, "tool_execution_error");
    assert!(failed.message.contains("$[3][1]: NaN is no JSON"), "{}", failed.message);
}

#[tokio::test]
async fn refused_inputs_are_input_errors() {
    let world = World::new();
    world.tool("t", "", "def run(i):\n    return i.x");
    let tools = world.ready().await;
    let refused = fault(call(&tools, "t", json!({"x": "many"})).await, InputError, "input_error");
    assert!(refused.message.contains("x: Input should be a valid integer"), "{}", refused.message);
    assert_eq!(refused.cause.unwrap()["error"]["details"][0]["at"], "x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_wrong_inside_is_an_execution_failure() {
    let world = World::new();
    world.tool("raises", "", "def run(i):\n    raise ValueError('no such city: ' + i.text)");
    world.tool("invalid", "", "def run(i):\n    InputModel(x='a')");
    world.tool("exits", "", "def run(i):\n    sys.exit(3)");
    world.tool(
        "vanishes",
        "",
        "def run(i):\n    print('last words', file=sys.stderr, flush=True)\n    os._exit(7)",
    );
    world.tool("killed", "", "def run(i):\n    os.kill(os.getpid(), 9)");
    for (name, value) in [
        ("nan", "float('nan')"),
        ("deep_nan", "{'a': [float('inf')]}"),
        ("binary", "b'\\xff'"),
        ("object", "object()"),
        ("surrogate", "'\\ud800'"),
        ("function", "{'f': run}"),
    ] {
        world.tool(name, "", &format!("def run(i):\n    return {value}"));
    }
    world.tool(
        "nan_model",
        "",
        "class O(BaseModel):\n    v: float\ndef run(i):\n    return O(v=float('nan'))",
    );
    world.tool(
        "nested",
        "",
        "def run(i):\n    v = []\n    for _ in range(300):\n        v = [v]\n    return v",
    );
    let tools = world.ready().await;
    let raised =
        fault(call(&tools, "raises", json!({"text": "X"})).await, ExecutionFailure, "tool_execution_error");
    assert_eq!(raised.message, "ValueError: no such city: X");
    let trace = raised.cause.unwrap()["error"]["traceback"].to_string();
    assert!(trace.contains("raise ValueError") && !trace.contains("<string>"), "{trace}");
    fault(call(&tools, "invalid", json!({})).await, ExecutionFailure, "tool_execution_error");
    let exit = fault(call(&tools, "exits", json!({})).await, ExecutionFailure, "tool_execution_error");
    assert!(exit.message.contains("sys.exit(3)"), "{}", exit.message);
    let gone = call(&tools, "vanishes", json!({})).await;
    assert!(!gone.as_ref().unwrap_err().transient);
    let gone = fault(gone, ExecutionFailure, "subprocess_execution_error");
    assert!(gone.message.contains("exit code 7") && gone.message.contains("last words"), "{}", gone.message);
    let killed = call(&tools, "killed", json!({})).await;
    assert!(killed.as_ref().unwrap_err().transient, "a tool killed by a signal may be tried again (D-17)");
    fault(killed, ExecutionFailure, "subprocess_execution_error");
    for name in ["nan", "deep_nan", "binary", "object", "surrogate", "function", "nan_model"] {
        let failed = fault(call(&tools, name, json!({})).await, ExecutionFailure, "tool_execution_error");
        assert!(failed.message.contains("not JSON"), "{name}: {}", failed.message);
    }
    fault(call(&tools, "nested", json!({})).await, LimitExceeded, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_get_a_clean_environment_and_a_scratch_folder() {
    let world = World::new();
    world.tool("look", "", "def run(i):\n    return {'env': dict(os.environ), 'cwd': os.getcwd(), 'stdin': sys.stdin.read(), 'here': os.listdir('.'), 'argv': sys.argv}");
    let tools = world.ready().await;
    // The test runner's own variables stand for secrets: none of them may come through.
    let ours: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    assert!(ours.iter().any(|name| name.starts_with("CARGO")), "something must be there to leak");
    let seen = call(&tools, "look", json!({})).await.unwrap();
    let mut names: Vec<_> = seen["env"].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    // For root's tools, which are another user.
    names.retain(|name| !name.starts_with("GIT_CONFIG_"));
    assert_eq!(names, ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SELVEDGE_EFFECT_ID", "TMPDIR", "USER"]);
    assert_eq!(seen["env"]["SELVEDGE_EFFECT_ID"], "main/n/1/1", "the idempotency key (E-05)");
    assert_eq!(seen["env"]["HOME"], seen["env"]["TMPDIR"]);
    assert!(seen["env"]["HOME"].as_str().unwrap().contains("scratch"));
    // Relative paths in its input start at the document's folder.
    let folder = world.path("document").canonicalize().unwrap();
    assert_eq!(seen["cwd"].as_str().unwrap(), folder.to_str().unwrap());
    assert_eq!(&seen["stdin"], &json!(""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_limits_end_the_whole_group() {
    let world = World::new();
    // A child and a grandchild that ignore the polite signal; the grandchild can be found by its arguments.
    let body = "import signal
def run(i):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        if os.fork() == 0:
            os.execv('/bin/sleep', ['sleep', i.text])
        os._exit(0)
    time.sleep(60 if i.x else 0.5)
    return 'done'";
    world.tool("fork", "", body);
    world.tool("own", ", 'timeout': 0.4", "def run(i):\n    time.sleep(60)");
    let tools = world.ready().await;
    let mark = mark();
    let args = |x: i32| json!({"x": x, "text": mark});
    let start = Instant::now();
    let (late, seen) = tokio::join!(call_within(&tools, "fork", args(1), 4.0), async {
        eventually("the grandchild runs", || anyone(&mark)).await;
    });
    let () = seen;
    assert!(late.as_ref().unwrap_err().transient);
    let late = fault(late, Timeout, "tool_execution_timeout");
    assert!(late.message.contains("its 4 s"), "{}", late.message);
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(!anyone(&mark), "the grandchild of a call that timed out is gone");
    // The same when the call ends well and leaves a daemon in its group.
    assert_eq!(call(&tools, "fork", args(0)).await.unwrap(), json!("done"));
    assert!(!anyone(&mark), "a daemon left behind is gone");
    fault(call(&tools, "own", json!({})).await, Timeout, "tool_execution_timeout");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_call_kills_its_group() {
    let world = World::new();
    let body = "def run(i):
    if os.fork() == 0:
        os.execv('/bin/sleep', ['sleep', i.text])
    os.execv('/bin/sleep', ['sleep', i.text])";
    world.tool("sleeper", "", body);
    let tools = world.ready().await;
    let mark = mark();
    let pending = tools.call(request(&tools, "sleeper", json!({"text": mark})), context());
    let running = tokio::spawn(pending);
    eventually("the tool runs", || anyone(&mark)).await;
    running.abort();
    eventually("both processes are gone", || !anyone(&mark)).await;
    eventually("its scratch folder is gone", || world.scratch_is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_or_a_stranger_does_not_hold_up_an_answer() {
    let world = World::new();
    let thread = "import threading\ndef run(i):\n    threading.Thread(target=time.sleep, args=(60,)).start()\n    return 1";
    world.tool("thread", "", thread);
    // It leaves the group and keeps the diagnostic streams open.
    let stranger = "def run(i):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(45)\n        os._exit(0)\n    return 2";
    world.tool("stranger", "", stranger);
    // A child that runs on where its parent does would answer too.
    world.tool("twice", "", "def run(i):\n    os.fork()\n    return 3");
    let tools = world.ready().await;
    let start = Instant::now();
    assert_eq!(call(&tools, "twice", json!({})).await.unwrap(), json!(3));
    assert_eq!(call(&tools, "thread", json!({})).await.unwrap(), json!(1));
    assert_eq!(call(&tools, "stranger", json!({})).await.unwrap(), json!(2));
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_are_drained_and_outputs_bounded() {
    let world = World::new();
    world.tool("chatty", "", "def run(i):\n    line = 'x' * 99 + '\\n'\n    for _ in range(100):\n        sys.stdout.write(line * 10000)\n    os.write(2, b'end')\n    return 'kept'");
    world.tool("big", "", "def run(i):\n    return 'y' * i.x");
    let mut config = world.config();
    config.limits.tool_output_bytes = 1 << 20;
    let tools = selvedge_tools::Catalogue::load(config).await.unwrap();
    tools.prepare(&["chatty", "big"]).await.unwrap();
    assert_eq!(call(&tools, "chatty", json!({})).await.unwrap(), json!("kept"));
    assert!(call(&tools, "big", json!({"x": (1 << 20) - 2})).await.is_ok(), "exactly the limit");
    let over = fault(call(&tools, "big", json!({"x": 3 << 20})).await, LimitExceeded, "");
    assert!(
        over.message.contains("tool_output_bytes") && over.message.contains("[limits]"),
        "{}",
        over.message
    );
    // Memory and file size are limits too.
    world.tool("hungry", "", "def run(i):\n    return len(bytearray(64 << 30))");
    world.tool("filler", "", "def run(i):\n    f = open('f', 'wb')\n    f.truncate(3 << 30)\n    f.seek(3 << 30)\n    f.write(b'x')\n    f.close()");
    let tools = world.ready().await;
    let hungry = fault(call(&tools, "hungry", json!({})).await, ExecutionFailure, "tool_execution_error");
    assert!(hungry.message.contains("MemoryError"), "{}", hungry.message);
    let filler = fault(call(&tools, "filler", json!({})).await, ExecutionFailure, "tool_execution_error");
    assert!(filler.message.contains("OSError"), "{}", filler.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_see_what_a_tool_prints() {
    let world = World::new();
    let body = "def run(i):\n    print('step 1')\n    print('étape 2\\n\\n', end='rest', file=sys.stderr)\n    return 1";
    world.tool("talks", "", body);
    let tools = world.ready().await;
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let into = seen.clone();
    let watch = move |delta| match delta {
        Delta::Progress(line) => into.lock().unwrap().push(line),
        Delta::Text(_) => panic!("a tool has no text"),
    };
    let context = CallContext { watch: Some(std::sync::Arc::new(watch)), ..CallContext::of("r") };
    tools.call(request(&tools, "talks", json!({})), context).await.unwrap();
    let mut seen = seen.lock().unwrap().clone();
    seen.sort();
    assert_eq!(seen, ["rest", "step 1", "étape 2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_inputs_arrive_whole() {
    let world = World::new();
    world.tool("length", "", "def run(i):\n    return len(i.text)");
    let tools = world.ready().await;
    let text = "é".repeat(3 << 20);
    assert_eq!(call(&tools, "length", json!({"text": text})).await.unwrap(), json!(3 << 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependencies_are_there_and_locked_by_hash() {
    let world = World::new();
    let body = "import idna\nfrom pydantic import VERSION\ndef run(i):\n    return idna.__version__";
    world.tool("dep", ", 'version_free': 1", body);
    let file = world.path("tools/dep.py");
    let text = std::fs::read_to_string(&file)
        .unwrap()
        .replace("'dependencies': []", "'dependencies': ['idna==3.10']");
    std::fs::write(&file, text).unwrap();
    // A shared cache of its own: `uv`'s own cache may be warm, the environment is not.
    let mut config = world.config();
    config.shared_cache = world.path("shared");
    // Two catalogues stand for two processes: one builds, one waits, both end with the same environment.
    let (one, two) = tokio::join!(
        selvedge_tools::Catalogue::load(config.clone()),
        selvedge_tools::Catalogue::load(config.clone())
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    let (a, b) = tokio::join!(one.prepare(&["dep"]), two.prepare(&["dep"]));
    a.unwrap();
    b.unwrap();
    assert_eq!(call(&one, "dep", json!({})).await.unwrap(), json!("3.10"));
    let built = world.said.lock().unwrap().iter().filter(|line| line.contains("idna==3.10")).count();
    assert_eq!(built, 1, "built once: {:?}", world.said);
    let locks: Vec<_> = std::fs::read_dir(world.path("shared/envs"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    assert_eq!(locks.len(), 1);
    let lock = std::fs::read_to_string(&locks[0]).unwrap();
    assert!(
        lock.contains("idna==3.10") && lock.contains("pydantic==2") && lock.contains("--hash=sha256:"),
        "{lock}"
    );
    assert!(one.warnings().iter().any(|w| w.message.contains("version_free")));
    // An environment that was lost is built again from the lock, also by a mere call.
    let place = locks[0].with_extension("");
    std::fs::remove_dir_all(&place).unwrap();
    assert_eq!(call(&two, "dep", json!({})).await.unwrap(), json!("3.10"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn impossible_dependencies_are_the_documents_error() {
    let world = World::new();
    let path = world.tool("t", "", "def run(i):\n    return 1");
    let text = std::fs::read_to_string(&path)
        .unwrap()
        .replace("'dependencies': []", "'dependencies': ['pydantic<2']");
    std::fs::write(&path, text).unwrap();
    let tools = world.load().await;
    let errors = tools.prepare(&["t"]).await.unwrap_err();
    assert_eq!(errors.class(), selvedge_tools::ErrorClass::Document, "{errors}");
    assert!(
        errors.to_string().contains("pydantic<2") && errors.0[0].file.as_deref() == Some(&*path),
        "{errors}"
    );
    assert!(tools.def("t").is_none(), "its schema is not known");
}

#[tokio::test]
async fn uv_comes_from_pypi_where_it_is_missing() {
    use selvedge_tools::python::{interpreter, uv};
    let world = World::new();
    let env = crate::world::env();
    let python = interpreter::find(None, &world.path("shared"), &env).await.unwrap();
    let said = world.said.clone();
    let progress: selvedge_tools::Progress =
        std::sync::Arc::new(move |line: &str| said.lock().unwrap().push(line.into()));
    let path = uv::fetched(&world.path("shared"), &python, &progress, &env).await.unwrap();
    assert!(path.starts_with(world.path("shared")));
    assert_eq!(world.said.lock().unwrap().len(), 1);
    assert_eq!(uv::fetched(&world.path("shared"), &python, &progress, &env).await.unwrap(), path);
    assert_eq!(world.said.lock().unwrap().len(), 1, "only once");
    let by_hand = world.path("by-hand");
    std::fs::create_dir(&by_hand).unwrap();
    uv::with_urllib(&python, &by_hand, &env).await.unwrap();
    let out = tokio::process::Command::new(by_hand.join("bin/uv")).arg("--version").output().await.unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).starts_with("uv "), "{out:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_without_python_says_what_to_do() {
    let world = World::new();
    world.tool("t", "", "def run(i):\n    return 1");
    let mut config = world.config();
    config.shared_cache = world.path("shared");
    config.python = Some(world.path("no-such-python"));
    let errors = selvedge_tools::Catalogue::load(config).await.err().unwrap();
    assert_eq!(errors.class(), selvedge_tools::ErrorClass::Environment);
    assert!(errors.to_string().contains("Python 3.9 or newer"), "{errors}");
}
