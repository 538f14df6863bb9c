"""All attacks as one tool. Each returns what it got, and None where the system refused."""
import ctypes, glob, mmap, os, platform, resource, signal, socket, struct, sys, time
from pydantic import BaseModel
__TOOL_META__ = {'name': 'attack', 'description': 'd', 'dependencies': []}

class InputModel(BaseModel):
    what: str
    arg: str = ''

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = {
    'x86_64': dict(ptrace=101, process_vm_readv=310, mount=165, umount2=166, pivot_root=155, chroot=161, bpf=321,
                   userfaultfd=323, keyctl=250, open_by_handle_at=304, name_to_handle_at=303, settimeofday=164, unshare=272,
                   mknodat=259, shmget=29, semget=64, msgget=68, memfd_create=319),
    'aarch64': dict(ptrace=117, process_vm_readv=270, mount=40, umount2=39, pivot_root=41, chroot=51, bpf=280,
                    userfaultfd=282, keyctl=219, open_by_handle_at=265, name_to_handle_at=264, settimeofday=170, unshare=97,
                    mknodat=33, shmget=194, semget=190, msgget=186, memfd_create=279),
}.get(platform.machine(), {})
NUMBERS.update(io_uring_setup=425, fsopen=430, openat2=437, memfd_secret=447, fchmodat2=452)

def system(name, *args):
    args = [a if isinstance(a, (bytes, type(None))) or hasattr(a, '_type_') or hasattr(a, '_length_') else ctypes.c_long(a) for a in args]
    got = libc.syscall(ctypes.c_long(NUMBERS.get(name, name)), *args)
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got

def silent(run, arg, otherwise=None):
    try:
        return run(arg)
    except OSError:
        return otherwise

def child(deed):
    """Whether a deed succeeds in a child, which keeps what it changes to itself."""
    words, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            deed()
            code = 0
        except BaseException as e:
            os.write(said, repr(e).encode())
        finally:
            os._exit(code)
    os.close(said)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError(os.read(words, 1000).decode())
    return True

# Files

def read(path):
    return open(path, errors='replace').read()

def write(path):
    open(path, 'w').write('was here')
    return True

def listed(path):
    return sorted(os.listdir(path))

def rewrite(path):
    """Writes what is there already: harmless, and only who may write can."""
    text = read(path)
    open(path, 'w').write(text)
    return True

def handle(path):
    """Opens a file by its number instead of its name, from any mount of its file system."""
    space = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
    mount = ctypes.c_int()
    folder, name = os.path.split(path)
    system('name_to_handle_at', -100, path.encode(), space, ctypes.addressof(mount), 0)
    fd = os.open(folder, os.O_RDONLY)
    return os.read(system('open_by_handle_at', fd, space, os.O_RDONLY), 100).decode()

def leaked(word):
    return [path for path in glob.glob('/proc/[0-9]*/environ') if word in silent(read, path, '')] or None

def set_id(how, bit):
    path, mode = os.environ['HOME'] + '/set-id', bit << 9 | 0o755
    if how == 'chmod':
        open(path, 'w').close()
        os.chmod(path, mode)
    elif how == 'fchmod':
        with open(path, 'w') as f:
            os.fchmod(f.fileno(), mode)
    elif how == 'fchmodat2':
        open(path, 'w').close()
        system('fchmodat2', -100, path.encode(), mode, 0)
    elif how == 'born':
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
    elif how == 'openat2':
        os.close(system('openat2', -100, path.encode(), struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, mode, 0), 24))
    elif how == 'node':
        system('mknodat', -100, path.encode(), 0o100000 | mode, 0)
    elif how == 'nameless':
        fd = os.open(os.environ['HOME'], os.O_TMPFILE | os.O_WRONLY, mode)
        os.link('/proc/self/fd/%d' % fd, path, src_dir_fd=fd, follow_symlinks=True)
        os.close(fd)
    elif how == 'mkdir':
        os.mkdir(path, mode)
    return os.stat(path).st_mode & 0o6000

def set_ids(_):
    """The ways in which a file came to run as its owner (4) or its group (2)."""
    found, path = [], os.environ['HOME'] + '/set-id'
    for how in ('chmod', 'fchmod', 'fchmodat2', 'born', 'openat2', 'node', 'nameless', 'mkdir'):
        for bit in (4, 2, 6):
            found += ['%s %d' % (how, bit)] if silent(lambda how: set_id(how, bit), how) else []
            if os.path.exists(path):
                os.rmdir(path) if os.path.isdir(path) else os.remove(path)
    return found or None

def descriptors(_):
    names = []
    for fd in os.listdir('/proc/self/fd'):
        names += silent(lambda fd: [os.readlink('/proc/self/fd/' + fd)], fd, [])
    return [name for name in names if name.startswith('/') and not name.startswith(('/proc/', '/dev/'))] or None

# Network

def connect(port):
    socket.create_connection(('127.0.0.1', int(port)), 2).close()
    return True

def datagram(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        return s.sendto(b'canary', ('127.0.0.1', int(port))) or None

def unix(path):
    """A path, or an abstract name with @ before it."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect('\0' + path[1:] if path.startswith('@') else path)
    return True

def unix_datagram(arg):
    """The same by one of a pair: a datagram can be sent to another address than the other end's."""
    kind, path = arg.split(' ', 1)
    a, b = socket.socketpair(socket.AF_UNIX, int(kind))
    name = '\0' + path[1:] if path.startswith('@') else path
    return a.sendmsg([b'canary'], [], 0, name) or None

def serve(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen()
    os.remove(path)
    return True

def pair(arg):
    a, b = socket.socketpair(*map(int, arg.split()))
    a.send(b'x')
    return True if b.recv(1) == b'x' else None

def socket_of_another_machine(_):
    """A socket by the system call of 32-bit programs, which every program can make."""
    space = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    start = ctypes.addressof(ctypes.c_char.from_buffer(space))
    space[64:76] = struct.pack('III', 1, 1, 0)
    # push rbx; eax = socketcall, ebx = SYS_SOCKET, ecx = its arguments; int 0x80; pop rbx; ret
    space[:20] = bytes.fromhex('53b866000000bb01000000b9') + struct.pack('I', start + 64) + bytes.fromhex('cd805bc3')
    def deed():
        if ctypes.CFUNCTYPE(ctypes.c_int)(start)() < 0:
            raise OSError('refused')
    return child(deed)

def loops(_):
    """What tools do with pairs of sockets: event loops, and processes that talk to each other."""
    import asyncio, multiprocessing
    async def both():
        process = await asyncio.create_subprocess_exec('/bin/echo', 'said', stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0].decode().strip()
    with multiprocessing.get_context('fork').Pool(2) as pool:
        sums = pool.map(sum, [[1, 2], [3, 4]])
    ours, theirs = multiprocessing.Pipe()
    ours.send('piped')
    return [asyncio.run(both()), sums, theirs.recv()]

def open_socket(arg):
    family, kind, protocol = map(int, arg.split())
    return True if socket.socket(family, kind, protocol).fileno() >= 0 else None

# Processes

def bomb(most):
    children = 0
    try:
        while children < int(most):
            pid = os.fork()
            if pid == 0:
                time.sleep(20)
                os._exit(0)
            children += 1
    except OSError:
        return None
    return children

def daemon(mark):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(64):
                silent(os.close, fd)
            os.execv('/bin/sleep', ['sleep', mark])
        os._exit(0)
    time.sleep(0.3)
    return True

def stubborn(mark):
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, signal.SIG_IGN)
    if os.fork() == 0:
        os.execv('/bin/sleep', ['sleep', mark])
    time.sleep(60)

def kill(pid):
    os.kill(int(pid), 9)
    return True

def trace(_):
    return child(lambda: system('ptrace', 0, 0, 0, 0))

def memory_of(arg):
    """Copies a piece of another process's memory."""
    pid, address, size = map(int, arg.split())
    space = ctypes.create_string_buffer(size)
    here = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(space), size))
    there = ctypes.create_string_buffer(struct.pack('QQ', address, size))
    system('process_vm_readv', pid, here, 1, there, 1, 0)
    return space.raw.decode()

# Resources

def hog(size):
    try:
        return len(bytearray(int(size)))
    except MemoryError:
        return None

def unseen(size):
    """Memory in files without a place, of which each is as large as a file may be, and none is mapped."""
    got, piece, files = 0, b'x' * (1 << 19), []
    while got < int(size):
        files.append(os.memfd_create('x'))
        got += os.write(files[-1], piece)
    return got

def held(what):
    """Other memory that the kernel keeps for a process without a mapping: one piece of it."""
    args = {'memfd_create': (b'x', 0), 'memfd_secret': (0,), 'shmget': (0, 4096, 0o1600), 'semget': (0, 1, 0o1600), 'msgget': (0, 0o1600)}
    made = system(what, *args[what])
    if what in ('shmget', 'semget', 'msgget'):
        calls = {'x86_64': dict(shmget=31, semget=66, msgget=71), 'aarch64': dict(shmget=195, semget=191, msgget=187)}
        numbers = calls[platform.machine()]
        # Removed again: without a namespace of its own it would stay.
        system(numbers[what], made, *((0, 0, 0) if what == 'semget' else (0, 0)))
    return True

def fill(size):
    with open(os.environ['HOME'] + '/fill', 'wb') as f:
        f.write(b'x' * int(size))
    return True

def fill_many(count):
    """Files of a size that each may have, one after the other."""
    for number in range(int(count)):
        with open(os.environ['HOME'] + '/fill-%d' % number, 'wb') as f:
            f.write(b'x' * (1 << 19))
        time.sleep(0.02)
    return 'done'

def burrow(depth):
    os.chdir(os.environ['HOME'])
    for _ in range(int(depth)):
        os.mkdir('d')
        os.chdir('d')
    time.sleep(5)
    return 'done'

def flood(size):
    piece = b'x' * (1 << 20)
    for _ in range(int(size) >> 20):
        os.write(1, piece)
    return 'done'

def answer(size):
    piece = b'x' * (1 << 20)
    for fd in range(3, 32):
        for _ in range(int(size) >> 20):
            if silent(lambda fd: os.write(fd, piece), fd) is None:
                break
    return 'done'

def core(_):
    """Whether a process that crashes leaves its memory in a file."""
    os.chdir(os.environ['HOME'])
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except (OSError, ValueError):
            pass
        os.abort()
    return True if os.WCOREDUMP(os.waitpid(pid, 0)[1]) else None

# The kernel

def namespace(_):
    return child(lambda: system('unshare', 0x10000000))

def in_namespace(deed):
    """With all rights, in namespaces for users and mounts of its own."""
    user, group = os.getuid(), os.getgid()
    system('unshare', 0x10000000)
    open('/proc/self/setgroups', 'w').write('deny')
    open('/proc/self/uid_map', 'w').write('%d %d 1' % (user, user))
    open('/proc/self/gid_map', 'w').write('%d %d 1' % (group, group))
    system('unshare', 0x20000)
    deed()

def mount(_):
    return child(lambda: in_namespace(lambda: system('mount', b'none', b'/dev/shm', b'tmpfs', 0, None)))

def umount(_):
    def deed():
        system('mount', b'none', b'/dev/shm', b'tmpfs', 0, None)
        system('umount2', b'/dev/shm', 0)
    return child(lambda: in_namespace(deed))

def pivot(_):
    def deed():
        system('mount', b'none', b'/', None, 0x44000, None)
        system('mount', b'none', b'/dev/shm', b'tmpfs', 0, None)
        os.mkdir('/dev/shm/old')
        system('pivot_root', b'/dev/shm', b'/dev/shm/old')
    return child(lambda: in_namespace(deed))

def chroot(_):
    return child(lambda: in_namespace(lambda: system('chroot', b'/usr')))

def filesystem(_):
    return child(lambda: in_namespace(lambda: system('fsopen', b'tmpfs', 0)))

def io_uring(_):
    return True if system('io_uring_setup', 1, ctypes.create_string_buffer(256)) >= 0 else None

def bpf(_):
    # A map of one element.
    return True if system('bpf', 0, ctypes.create_string_buffer(struct.pack('=IIIII', 2, 4, 8, 1, 0) + bytes(108)), 128) >= 0 else None

def fault(_):
    # Only faults of user space, which anybody may handle.
    return True if system('userfaultfd', 1) >= 0 else None

def keys(_):
    return True if system('keyctl', 0, -3, 0) >= 0 else None

def keys_again(_):
    # The same under the second set of numbers that x86-64 has.
    return True if system(NUMBERS['keyctl'] | 0x40000000, 0, -3, 0) >= 0 else None

def clock(_):
    # Sets nothing, and still takes the right to.
    return True if system('settimeofday', None, None) == 0 else None

def identity(_):
    return {'uid': os.getuid(), 'groups': os.getgroups(), 'status': read('/proc/self/status')}

# Other calls

def scratch(_):
    places = [os.environ['HOME'] + '/secret', '/dev/shm/selvedge-secret']
    for place in places:
        open(place, 'w').write('canary')
        os.chmod(place, 0o666)
    time.sleep(4)
    found = open(places[0]).read()
    for place in places:
        os.remove(place)
    return found

def mine():
    # Itself and its parent: their numbers are others in the mounted /proc.
    parent = [line.split()[1] for line in read('/proc/self/status').splitlines() if line.startswith('PPid:')]
    return ['/proc/' + os.readlink('/proc/self'), '/proc/' + parent[0]]

def snoop(deed):
    """All that one call may find of another: files, shared memory, environment, memory, and, if it is to, its life."""
    base = os.path.dirname(os.environ['HOME'])
    found = []
    for pattern in (base + '/*/secret', base + '/*/*/secret', '/tmp/*/secret', '/dev/shm/selvedge-secret'):
        found += ['file' for path in glob.glob(pattern) if silent(read, path)]
    # Names of others, beside its own.
    found += ['name' for name in silent(os.listdir, base, []) if name != os.path.basename(os.environ['HOME'])]
    for proc in glob.glob('/proc/[0-9]*'):
        if proc in mine():
            continue
        if 'SELVEDGE_EFFECT_ID=canary' in silent(read, proc + '/environ', ''):
            found.append('environment')
            if silent(lambda path: open(path + '/mem', 'rb'), proc):
                found.append('memory')
        if deed == 'kill':
            for fd in silent(os.listdir, proc + '/fd', []):
                found += silent(lambda path: [path + ' ' + os.readlink(path)], proc + '/fd/' + fd, [])
            for look in (lambda path: open(path + '/mem', 'rb'), lambda path: read(path + '/maps'), lambda path: os.listdir(path + '/cwd')):
                found += [proc + ' is open'] if silent(look, proc) else []
    if deed == 'kill':
        for pid in range(1, 400):
            if pid != os.getpid():
                silent(lambda pid: os.kill(pid, 9), pid)
    return sorted(set(found)) or None

def group(_):
    """The control group that it is in, and how its processes fare where memory runs out."""
    return [read('/proc/self/cgroup'), read('/proc/self/oom_score_adj').strip()]

def run(i):
    try:
        return globals()[i.what](i.arg)
    except OSError as e:
        print(e)
        return None
