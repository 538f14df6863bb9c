

"""Keeps an interpreter warm: everything is imported that a tool of the environment needs first, and never a tool's own code.
Each call is a child that confines itself further (sandbox.py) before it loads the tool.

Descriptor 0 is a socket of packets. The first packet is the setup (see `Setup` in crates/sandbox/src/server.rs); after "ready" and the KiB of
memory that this process takes are sent, each packet is a call with four descriptors: the call's stdin, a socket on which it
answers, too, its stdout, its stderr, and its status, a socket on which the call's wait status is sent when all of its processes
are gone, and whose end asks for that. A packet begins with the version of the tool's file, VERSION bytes. Where calls have
control groups, the entrances of those of the first SPARES calls come with the setup, and with each call that of a later one.

A call is two children of this process in a namespace of processes of their own: the first one, with which all others end,
and the tool's, which makes the other namespaces and confines itself. They are made ahead, so that a call need not wait.

All that is in this process's memory is in that of each call: nothing of one call may be here that another must not see.
"""

import collections
import fcntl
import gc
import select
import socket
import tempfile
import time

# Calls that are made ahead, and the milliseconds after a call before another is made while one is left.
SPARES, PAUSE = 2, 10
# The length of a version, the longest compiled tool that is kept, and how many of them: each is an open file.
VERSION, LONGEST = 64, 96 << 10
MOST = min(64, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 8)
# A file in memory that nobody can change: F_SEAL_SEAL, _SHRINK, _GROW and _WRITE.
SEALED = 1 | 2 | 4 | 8
# Descriptors of a call on its way, and the seconds that importing ahead may take.
CALL, IMPORTING = 4, 10


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
        code = compiled.get(self.version)
        socket.send_fds(self.job, [packet], files[:3] if code is None else files[:3] + [code])
        if self.group is not None:
            os.close(self.group)
        self.status = files[3]
        watched[self.status] = self
        poll.register(self.status, select.POLLIN)
        if code is None:
            watched[self.job.fileno()] = self
            poll.register(self.job, select.POLLIN)
        else:
            self.job.close()

    def heard(self, fd):
        """The tool's process has compiled its file, or whoever waits for it wants it to end."""
        poll.unregister(fd)
        del watched[fd]
        if fd == self.status:
            return self.end()
        # It is what has not run any of the tool's own code yet that speaks, and only to calls of the same version.
        try:
            _, files, _, _ = socket.recv_fds(self.job, 16, 1, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            # It was ended before it had read its call.
            files = []
        self.job.close()
        for fd in files:
            keep(self.version, fd)

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


def keep(version, fd):
    """Keeps a compiled file, unread: in this process's memory, it would be in that of other tools' calls."""
    if version not in compiled and len(compiled) >= MOST:
        for other in compiled.values():
            os.close(other)
        compiled.clear()
    # Two calls at the same time have compiled it both.
    other = compiled.pop(version, None)
    if other is not None:
        os.close(other)
    compiled[version] = fd


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
    made = None
    try:
        made = spares.pop(0) if spares else Call()
        try:
            made.take(packet, files)
        except OSError:
            made.end()
            made = Call(made.group)
            made.take(packet, files)
    except OSError:
        # There can be no more processes, or open files: the call's status ends without a word.
        if made is not None:
            made.end()
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
                taken()


def taken():
    """Takes the next call, or ends with all of them if there is to be none."""
    packet, files, _, _ = socket.recv_fds(control, 1 << 16, CALL + 1, socket.MSG_CMSG_CLOEXEC)
    if not packet:
        os._exit(0)
    if len(files) < CALL:
        # No more files can be open: the call's status has ended with that.
        for fd in files:
            os.close(fd)
        return
    groups.extend(files[CALL:])
    begin(packet, files)


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
    # What it compiles is for later calls of its version (`share`): files in memory can't be made any more after this.
    blank = os.memfd_create("compiled", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    for program in filters:
        check(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0))
    ruleset = landlock.prepare()
    reseed()
    if not children:
        # The first one shows that all this can be done here.
        job.send(b"1")
    packet, files, _, _ = socket.recv_fds(job, 1 << 16, CALL, socket.MSG_CMSG_CLOEXEC)
    if packet:
        start(job, blank, json.loads(packet[VERSION:]), ruleset, *files)


def reseed():
    """Packages that were imported ahead have drawn their first random numbers' seed in the server: each call has its own."""
    for name in ("numpy.random", "torch"):
        try:
            if name in sys.modules:
                sys.modules[name].seed()
        except Exception:
            # It is another module of this name.
            pass


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


def start(job, blank, call, ruleset, talk, stdout, stderr, code=None):
    """Becomes the tool's process: nothing of the server is open any more, once the file is compiled."""
    try:
        confine(call, ruleset)
    except BaseException as error:
        os.write(stderr, ("the sandbox cannot be set up: %s" % error).encode("utf-8", "replace"))
        os._exit(126)
    os.setsid()
    # Not onto each other: these numbers are above the standard ones.
    os.dup2(talk, 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    if code is not None:
        Given.compiled = marshal.loads(os.pread(code, LONGEST, 0))
        os.closerange(3, 1 << 12)
    else:
        os.dup2(job.fileno(), 3, inheritable=False)
        os.dup2(blank, 4, inheritable=False)
        os.closerange(5, 1 << 12)
        Given.share = share
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["folder"])
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()


def share(codes):
    """Gives the compiled tool to later calls of the same version, as a file in memory that none of them can change."""
    data = marshal.dumps(codes)
    with socket.socket(fileno=3) as server, os.fdopen(4, "wb", buffering=0) as file:
        try:
            if len(data) <= LONGEST and file.write(data) == len(data):
                fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALED)
                socket.send_fds(server, [b"compiled"], [file.fileno()])
        except OSError:
            # Each compiles it for itself then.
            pass


def threads():
    return len(os.listdir("/proc/self/task"))


def has_threads():
    """Whether there are threads that do not end for a fork, as those of a library do that can be forked (OpenBLAS)."""
    alone = lambda: threads() == 1
    if alone():
        return False
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    # Who has ended may be there for a moment.
    return not any(alone() or time.sleep(0.001) for _ in range(50))


def preload():
    """What every call needs first, used once so that nothing is left to be imported, and what tools import.

    Whoever is not done in time ends here, and so does who starts threads, which a call would not have: this process is
    started once more then, without the import that was told last.
    """
    from pydantic import BaseModel

    class Preload(BaseModel):
        text: str = ""
        number: float = 0

    Preload.model_json_schema()
    Preload.model_validate_json(b'{"text": "a", "number": 1}').model_dump(mode="json")
    asyncio.run(asyncio.sleep(0))
    # What packages write while they are imported is nobody's: each call has other shared memory.
    os.environ["HOME"] = os.environ["TMPDIR"] = "/dev/shm"
    # The first process of a namespace: without a handler, no signal from in there ends it.
    signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
    signal.setitimer(signal.ITIMER_REAL, IMPORTING)
    before = threads()
    for number, (name, members) in enumerate(setup["imports"]):
        control.send(b"import %d" % number)
        try:
            __import__(name, {}, {}, members)
        except BaseException:
            # The tool will see for itself.
            pass
        if threads() > before:
            if has_threads():
                os._exit(1)
            before = threads()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


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
control.send(b"ready %d" % resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
serve()
