

"""Keeps an interpreter warm: everything is imported that any tool of the environment needs first, and never a tool's
own code. Each call is a child that confines itself further before it loads the tool.

Descriptor 0 is a socket of packets. The first packet is the setup (see `Setup` in server.rs); after "ready" is sent, each
packet is a call with four descriptors: the call's stdin, its answer, its stderr, and its status, a socket on which the
call's wait status is sent when all of its processes are gone, and whose end asks for that. A packet begins with the
version of the tool's file, VERSION bytes. Where calls have control groups, the entrances of those of the first SPARES calls
come with the setup, and with each call that of a later one.

A call is two children of this process in a namespace of processes of their own: the first one, with which all others end,
and the tool's, which makes the other namespaces and confines itself. They are made ahead, so that a call need not wait.
"""

import collections
import ctypes
import gc
import resource
import select
import signal
import socket
import struct
import tempfile

# Calls that are made ahead, and the milliseconds after a call before another is made while one is left.
SPARES, PAUSE = 2, 10
# The length of a version, the longest compiled tool that is kept, and how many of them.
VERSION, LONGEST, MOST = 64, 96 << 10, 256
NEWNS, NEWIPC, NEWPID = 0x20000, 0x8000000, 0x20000000
SET_DUMPABLE, SET_SECCOMP, FILTER = 4, 22, 2
CREATE_RULESET, ADD_RULE, RESTRICT_SELF, BENEATH = 444, 445, 446, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL = 1, 2, 4, 8, 0x4000, 0x8000
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL
# A program that waits for ever: `pause` in a loop. Nothing costs less to start and to end.
PAUSING = {"x86_64": (62, "b8220000000f05ebf7")}

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class Filter(ctypes.Structure):
    """What seccomp takes: a number of steps and where they are."""

    _fields_ = [("len", ctypes.c_ushort), ("steps", ctypes.c_void_p)]

    def __init__(self, text):
        data = bytes.fromhex(text)
        self.data = ctypes.create_string_buffer(data, len(data))
        super().__init__(len(data) // 8, ctypes.addressof(self.data))


class Landlock:
    """The rules of every call; the folder that is the call's own comes with the call."""

    def __init__(self, setup):
        abi = check(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1))
        bits = 13 if abi < 2 else 14 if abi < 3 else 15 if abi < 5 else 16
        self.all = (1 << bits) - 1
        net = 3 if abi >= 4 and not setup["network"] else 0
        attributes = struct.pack("=QQQ", self.all, net, 3)
        self.attributes = attributes[: 8 if abi < 4 else 16 if abi < 6 else 24]
        self.rules = []
        for paths, rights in (
            (setup["read"], EXECUTE | READ_FILE | READ_DIR),
            (setup["write"], self.all),
            (setup["devices"], WRITE_FILE | READ_FILE | READ_DIR | IOCTL),
        ):
            self.rules += [self.rule(path, rights) for path in paths if os.path.exists(path)]

    def rule(self, path, rights):
        if not os.path.isdir(path):
            rights &= OF_FILES
        return struct.pack("=Qi", rights & self.all, os.open(path, os.O_PATH | os.O_CLOEXEC))

    def prepare(self):
        """Everything but the folder of one call."""
        ruleset = check(libc.syscall(CREATE_RULESET, self.attributes, ctypes.c_size_t(len(self.attributes)), 0))
        for rule in self.rules + [self.rule("/dev/shm", self.all)]:
            check(libc.syscall(ADD_RULE, ruleset, BENEATH, rule, 0))
        return ruleset

    def restrict(self, ruleset, own):
        check(libc.syscall(ADD_RULE, ruleset, BENEATH, self.rule(own, self.all), 0))
        check(libc.syscall(RESTRICT_SELF, ruleset, 0))


def keep_rights(mask):
    """Gives up all rights but these, for this process and all that it starts."""
    header = struct.pack("=Ii", 0x20080522, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    check(libc.capset(header, struct.pack("=6I", low, low, low, high, high, high)))


def limit(limits):
    for name, most in limits:
        kind = getattr(resource, "RLIMIT_" + name)
        _, hard = resource.getrlimit(kind)
        if most is not None and (hard == resource.RLIM_INFINITY or most < hard):
            resource.setrlimit(kind, (most, most))


class Call:
    """The two processes of a call, made before it comes."""

    def __init__(self, group=None):
        self.first = self.tool = self.status = self.version = None
        self.group = groups.popleft() if group is None and groups else group
        self.job, job = socket.socketpair(type=socket.SOCK_SEQPACKET)
        try:
            check(libc.unshare(NEWPID))
            self.first = idle()
            self.tool = os.fork()
            if self.tool == 0:
                become(job, self.group)
        except OSError:
            self.job.close()
            self.end()
            if self.group is not None:
                groups.appendleft(self.group)
            raise
        finally:
            job.close()
            # What is made next is none of this call's.
            check(libc.setns(namespace, NEWPID))
        children[self.first] = children[self.tool] = self

    def take(self, packet, files):
        self.version = packet[:VERSION]
        code = compiled.get(self.version, b"")
        socket.send_fds(self.job, [packet, b"\n", code], files[:3])
        if self.group is not None:
            os.close(self.group)
        self.status = files[3]
        watched[self.status] = self
        poll.register(self.status, select.POLLIN)
        if code:
            self.job.close()
        else:
            watched[self.job.fileno()] = self
            poll.register(self.job, select.POLLIN)

    def heard(self, fd):
        """The tool's process has compiled its file, or whoever waits for it wants it to end."""
        poll.unregister(fd)
        del watched[fd]
        if fd == self.status:
            return self.end()
        # It is what has not run any of the tool's own code yet that speaks, and only to calls of the same version.
        code = self.job.recv(LONGEST + 1)
        self.job.close()
        if 0 < len(code) <= LONGEST:
            if len(compiled) >= MOST:
                compiled.clear()
            compiled[self.version] = code

    def end(self):
        """What lives in a namespace ends with its first process."""
        for process in (self.tool, self.first):
            if process is not None:
                os.kill(process, signal.SIGKILL)

    def ended(self, process, code):
        if process == self.tool:
            self.tool, self.code = None, code
            self.end()
        else:
            self.first = None
        if self.tool is None and self.first is None:
            self.gone()

    def gone(self):
        """Tells how it went, now that nothing of it is left."""
        for fd in [fd for fd, call in watched.items() if call is self]:
            poll.unregister(fd)
            del watched[fd]
        self.job.close()
        if self.status is not None:
            try:
                os.write(self.status, struct.pack("=i", self.code))
            except OSError:
                # Nobody wants to know any more.
                pass
            os.close(self.status)


def reap():
    """Takes note of processes that have ended, also of those that a tool has made children of this one."""
    try:
        process, code = os.waitpid(-1, os.WNOHANG)
        while process != 0:
            if process in children:
                children.pop(process).ended(process, code)
            process, code = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass


def begin(packet, files):
    """Hands a call over to processes that were made ahead, or to others in their group, should those have ended."""
    try:
        made = spares.pop(0) if spares else Call()
        try:
            made.take(packet, files)
        except OSError:
            made.end()
            Call(made.group).take(packet, files)
    except OSError:
        # There can be no more processes: the call's status ends without a word.
        os.close(files[3])
    finally:
        for fd in files[:3]:
            os.close(fd)


def serve():
    while True:
        # Made ahead only while nobody waits, and not at the expense of the call that has just begun.
        room = len(spares) < SPARES and (groups or not setup["grouped"])
        wait = None if not room else PAUSE if spares else 0
        try:
            ready = poll.poll(wait)
            if not ready:
                spares.append(Call())
        except OSError:
            # No more processes just now.
            poll.poll(PAUSE)
            continue
        for fd, _ in ready:
            if fd in watched:
                watched[fd].heard(fd)
            elif fd == woken:
                os.read(woken, 1 << 12)
                reap()
            elif fd == control.fileno():
                packet, files, _, _ = socket.recv_fds(control, 1 << 16, 5, socket.MSG_CMSG_CLOEXEC)
                if not packet:
                    os._exit(0)
                groups.extend(files[4:])
                begin(packet, files)


def pausing():
    """The path of the smallest program that does nothing, in memory; `None` where it can't be made."""
    try:
        machine, code = PAUSING[os.uname().machine]
        code, start = bytes.fromhex(code), 0x400000
        size = 120 + len(code)
        head = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, start + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        part = struct.pack("<IIQQQQQQ", 1, 5, 0, start, start, size, size, 1 << 12)
        fd = os.memfd_create("first")
        os.write(fd, b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + head + part + code)
        # For reading only: what is open for writing is not executed.
        path = "/proc/self/fd/%d" % os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)
        os.close(fd)
        return path
    except (KeyError, OSError):
        return None


def idle():
    """A process that does nothing: a small one, which costs little to make and to end."""
    global smallest
    nothing = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
    if smallest is not None:
        try:
            return os.posix_spawn(smallest, ["first"], {}, file_actions=nothing)
        except PermissionError:
            # Programs in memory may not be allowed.
            smallest = None
    for program in ("/bin/sleep", "/usr/bin/sleep"):
        if os.path.exists(program):
            return os.posix_spawn(program, ["sleep", "1000000000"], {}, file_actions=nothing)
    process = os.fork()
    while process == 0:
        signal.pause()
    return process


def become(job, group):
    """Waits for a call, and becomes its tool."""
    try:
        if group is not None:
            os.write(group, b"0")
        prepare(job)
    finally:
        os._exit(126)


def prepare(job):
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    check(libc.unshare(NEWNS | NEWIPC))
    size = ("size=%d,mode=1777" % setup["shared_memory"]).encode()
    check(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 6, size))
    limit(setup["limits"].items())
    for program in filters:
        check(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0))
    ruleset = landlock.prepare()
    if not children:
        # The first one shows that all this can be done here.
        job.send(b"1")
    packet, files, _, _ = socket.recv_fds(job, 1 << 18, 3, socket.MSG_CMSG_CLOEXEC)
    if packet:
        call, _, code = packet[VERSION:].partition(b"\n")
        start(job, json.loads(call), code, ruleset, *files)


def confine(call, ruleset):
    """The rest of what a tool's process gives up, for good."""
    if call["user"] is not None:
        os.setresgid(call["user"], call["user"], call["user"])
        os.setresuid(call["user"], call["user"], call["user"])
        keep_rights(setup["rights"])
        check(libc.prctl(SET_DUMPABLE, 1, 0, 0, 0))
    else:
        keep_rights(0)
    limit([("CPU", call["cpu"])])
    landlock.restrict(ruleset, call["scratch"])


def start(job, call, code, ruleset, stdin, answer, stderr):
    """Becomes the tool's process: nothing of the server is open any more, once the file is compiled."""
    try:
        confine(call, ruleset)
    except BaseException as error:
        os.write(stderr, ("the sandbox cannot be set up: %s" % error).encode("utf-8", "replace"))
        os._exit(126)
    os.setsid()
    # Not onto each other: these numbers are above the standard ones.
    os.dup2(stdin, 0)
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    os.dup2(answer, 3, inheritable=False)
    if code:
        Given.compiled = code
        os.closerange(4, 1 << 12)
    else:
        os.dup2(job.fileno(), 4, inheritable=False)
        os.closerange(5, 1 << 12)
        Given.share = share
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["folder"])
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(3)


def share(code):
    """Gives the compiled file to later calls of the same version."""
    data = marshal.dumps(code)
    if len(data) <= LONGEST:
        try:
            os.write(4, data)
        except OSError:
            # Each compiles it for itself then.
            pass
    os.close(4)


def preload():
    """What every call needs first, used once so that nothing is left to be imported."""
    from pydantic import BaseModel

    class Preload(BaseModel):
        text: str = ""
        number: float = 0

    Preload.model_json_schema()
    Preload.model_validate_json(b'{"text": "a", "number": 1}').model_dump(mode="json")
    asyncio.run(asyncio.sleep(0))


control = socket.socket(fileno=os.dup(0))
while control.fileno() < 16:
    # Room for the numbers that calls use.
    control = socket.socket(fileno=os.dup(control.detach()))
packet, files, _, _ = socket.recv_fds(control, 1 << 20, SPARES, socket.MSG_CMSG_CLOEXEC)
setup, groups = json.loads(packet), collections.deque(files)
filters = [Filter(text) for text in setup["filters"]]
landlock = Landlock(setup)
check(libc.unshare(NEWPID))
server = os.fork()
if server != 0:
    # Who makes namespaces for children, one after the other, has to have its own from itself: the child has.
    control.close()
    os.close(0)
    os.waitpid(server, 0)
    os._exit(0)
namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)
smallest = pausing()
preload()
gc.collect()
gc.freeze()
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, lambda *_: None)
woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
# Processes by number, calls by what is heard of them, compiled files by version.
spares, children, watched, compiled = [], {}, {}, {}
poll = select.poll()
spares.append(Call())
if spares[0].job.recv(1) != b"1":
    # A call can't be confined here after all.
    os._exit(1)
poll.register(control, select.POLLIN)
poll.register(woken, select.POLLIN)
control.send(b"ready")
serve()
