

"""What confines a call of a warm interpreter (server.py) beyond what its server is confined by already, and the process that its
namespace begins with.
"""

import ctypes
import resource
import signal
import struct

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
