

"""Keeps an interpreter warm: everything is imported that any tool of the environment needs first, and never a tool's
own code. Each call is a child that confines itself further before it loads the tool.

Descriptor 0 is a socket of packets. The first packet is the setup (see `Setup` in server.rs); after "ready" is sent, each
packet is a call with four descriptors: the call's stdin, its answer, its stderr, and its status, a socket on which the
call's wait status is sent when all of its processes are gone, and whose end asks for that.

server -> keeper, which makes the call's namespaces -> their first process, with which all others end, and the tool, which
confines itself before it becomes one. They are made ahead, so that a call need not wait for them.
"""

import ctypes
import gc
import resource
import select
import signal
import socket
import struct
import tempfile

# Calls that are made ahead, and the seconds after a call before another is made while one is left.
SPARES, PAUSE = 2, 0.01
NEWNS, NEWIPC, NEWPID = 0x20000, 0x8000000, 0x20000000
SET_DUMPABLE, SET_SECCOMP, FILTER = 4, 22, 2
CREATE_RULESET, ADD_RULE, RESTRICT_SELF, BENEATH = 444, 445, 446, 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL = 1, 2, 4, 8, 0x4000, 0x8000
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL

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


class Spare:
    """The processes of a call to come."""

    def __init__(self, tell=False):
        self.keeper, status = socket.socketpair()
        self.tool, job = socket.socketpair(type=socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            control.detach()
            self.keeper.close()
            self.tool.close()
            try:
                keeper(status, job, tell)
            finally:
                os._exit(126)
        status.close()
        job.close()

    def take(self, packet, files):
        socket.send_fds(self.keeper, [b"1"], files[3:])
        socket.send_fds(self.tool, [packet], files[:3])
        self.close()

    def close(self):
        self.keeper.close()
        self.tool.close()


def keeper(status, job, tell):
    """Makes the call's namespaces, says so if that is asked, and ends them."""
    # Inherited by the first process: what is orphaned needs nobody to take note of its end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    check(libc.unshare(NEWPID | NEWNS | NEWIPC))
    size = ("size=%d,mode=1777" % setup["shared_memory"]).encode()
    check(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 6, size))
    first = idle()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        keep(first, status, job, tell)
    except BaseException:
        # No call without a keeper.
        os.kill(first, signal.SIGKILL)
        raise


def keep(first, status, job, tell):
    """Waits for the call, for its end or for word to end it, and tells how it went when nothing of it is left."""
    tool = os.fork()
    if tool == 0:
        status.close()
        become(job)
    job.close()
    if tell:
        status.send(b"1")
    _, files, _, _ = socket.recv_fds(status, 1, 1)
    status.close()
    if files:
        ended = os.pidfd_open(tool)
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(files[0], select.POLLIN)
        poll.poll()
    # In vain if it has ended, and with the first one, everything ends.
    os.kill(tool, signal.SIGKILL)
    os.kill(first, signal.SIGKILL)
    _, code = os.waitpid(tool, 0)
    os.waitpid(first, 0)
    if files:
        os.write(files[0], struct.pack("=i", code))
    os._exit(0)


def idle():
    """A process that does nothing: a small one, which costs little to make and to end."""
    for program in ("/bin/sleep", "/usr/bin/sleep"):
        if os.path.exists(program):
            nothing = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3)]
            return os.posix_spawn(program, ["sleep", "1000000000"], {}, file_actions=nothing)
    process = os.fork()
    while process == 0:
        signal.pause()
    return process


def become(job):
    """Waits for a call, and becomes its tool."""
    try:
        prepare(job)
    finally:
        os._exit(126)


def prepare(job):
    limit(setup["limits"].items())
    for program in filters:
        check(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0))
    ruleset = landlock.prepare()
    packet, files, _, _ = socket.recv_fds(job, 1 << 16, 3)
    if packet:
        start(json.loads(packet), ruleset, *files)


def confine(job, ruleset):
    """The rest of what a tool's process gives up, for good."""
    if job["user"] is not None:
        os.setresgid(job["user"], job["user"], job["user"])
        os.setresuid(job["user"], job["user"], job["user"])
        keep_rights(setup["rights"])
        check(libc.prctl(SET_DUMPABLE, 1, 0, 0, 0))
    else:
        keep_rights(0)
    limit([("CPU", job["cpu"])])
    landlock.restrict(ruleset, job["scratch"])


def start(job, ruleset, stdin, answer, stderr):
    """Becomes the tool's process: nothing of the server is open any more."""
    try:
        confine(job, ruleset)
    except BaseException as error:
        os.write(stderr, ("the sandbox cannot be set up: %s" % error).encode("utf-8", "replace"))
        os._exit(126)
    os.setsid()
    # Not onto each other: these numbers are above the standard ones.
    os.dup2(stdin, 0)
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    os.dup2(answer, 3, inheritable=False)
    os.closerange(4, 1 << 12)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(3)


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
setup = json.loads(control.recv(1 << 20))
filters = [Filter(text) for text in setup["filters"]]
landlock = Landlock(setup)
preload()
gc.collect()
gc.freeze()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
spares = [Spare(tell=True)]
if spares[0].keeper.recv(1) != b"1":
    # Namespaces cannot be made here after all.
    os._exit(1)
control.send(b"ready")
while True:
    try:
        # Only while nobody waits, and not at the expense of the call that has just begun.
        while len(spares) < SPARES and not select.select([control], [], [], PAUSE if spares else 0)[0]:
            spares.append(Spare())
    except OSError:
        # No more processes just now.
        pass
    packet, files, _, _ = socket.recv_fds(control, 1 << 16, 4)
    if not packet:
        os._exit(0)
    try:
        spare = spares.pop(0) if spares else Spare()
        spare.take(packet, files)
    except OSError:
        # The call's status ends without a word.
        pass
    for fd in files:
        os.close(fd)
