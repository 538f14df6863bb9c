"""All attacks as one tool. Each returns what it got, and None where the system refused."""
import ctypes, glob, os, platform, resource, signal, socket, struct, sys, time
from pydantic import BaseModel
__TOOL_META__ = {'name': 'attack', 'description': 'd', 'dependencies': []}

class InputModel(BaseModel):
    what: str
    arg: str = ''

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = {
    'x86_64': dict(ptrace=101, process_vm_readv=310, mount=165, umount2=166, pivot_root=155, chroot=161, bpf=321,
                   userfaultfd=323, keyctl=250, open_by_handle_at=304, name_to_handle_at=303, settimeofday=164, unshare=272),
    'aarch64': dict(ptrace=117, process_vm_readv=270, mount=40, umount2=39, pivot_root=41, chroot=51, bpf=280,
                    userfaultfd=282, keyctl=219, open_by_handle_at=265, name_to_handle_at=264, settimeofday=170, unshare=97),
}.get(platform.machine(), {})
NUMBERS.update(io_uring_setup=425, fsopen=430)

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

def suid(_):
    path = os.environ['HOME'] + '/suid'
    open(path, 'w').close()
    os.chmod(path, 0o4755)
    return True if os.stat(path).st_mode & 0o4000 else None

def born_suid(_):
    path = os.environ['HOME'] + '/born'
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755)
    return True if os.fstat(fd).st_mode & 0o4000 else None

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
