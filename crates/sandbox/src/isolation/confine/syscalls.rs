//! Seccomp: system calls that no tool needs and that attacks on kernels begin with.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, apply_filter, sock_filter as Step,
};
use std::collections::BTreeMap;
use std::io;

/// Refused whatever their arguments are.
const NEVER: &[libc::c_long] = &[
    // Looking into and acting on other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // File systems, and ways to files around their names.
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_fanotify_init,
    libc::SYS_acct,
    // Parts of the kernel with many past holes.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The machine itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];
#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[libc::c_long] =
    &[libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[libc::c_long] = &[];
/// Calls that set the mode of a file: which argument it is, and which one says whether it counts. What a tool leaves in a
/// folder that it may write must not run as its owner, who may be root, nor as its group. A folder's mode from `mkdir` has
/// no such bits, whatever is asked for.
const MODES: &[(libc::c_long, u8, Option<u8>)] = &[
    (libc::SYS_fchmod, 1, None),
    (libc::SYS_fchmodat, 2, None),
    (SYS_FCHMODAT2, 2, None),
    (libc::SYS_openat, 3, Some(2)),
    (libc::SYS_mknodat, 2, None),
];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(libc::c_long, u8, Option<u8>)] = &[
    (libc::SYS_chmod, 1, None),
    (libc::SYS_open, 2, Some(1)),
    (libc::SYS_creat, 1, None),
    (libc::SYS_mknod, 1, None),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(libc::c_long, u8, Option<u8>)] = &[];
/// The same number on all machines that filters are made for.
const SYS_FCHMODAT2: libc::c_long = 452;
/// Refused to tools, and what the server of warm interpreters lives on: namespaces, and the folder for shared memory of a
/// call.
const OF_SERVERS: &[libc::c_long] = &[libc::SYS_unshare, libc::SYS_setns, libc::SYS_mount];
/// Memory that a process holds without having it mapped, so that its limit does not see it, and what of the kernel's own
/// System V gives by the gigabyte. Told to tools as something that this kernel does not have: libraries do without it.
const UNSEEN: &[libc::c_long] =
    &[libc::SYS_memfd_create, libc::SYS_memfd_secret, libc::SYS_shmget, libc::SYS_semget, libc::SYS_msgget];
/// Sockets of any family, and everything by which one reaches what is outside: refused without the network. A pair
/// between a tool's own processes takes none of them.
const SOCKETS: &[libc::c_long] = &[libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen];
/// The flags of `clone` that make namespaces.
const NEW: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Typing into a terminal, and the console's own commands: the same numbers on all machines that filters are made for.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;
/// On x86-64, numbers from here on are a second set (x32), in which some calls have other numbers than in the first.
const SECOND_ABI: u32 = 0x4000_0000;

/// Restricts this process and all that it starts.
pub(super) fn restrict(network: bool, server: bool) -> io::Result<()> {
    let mut programs = vec![one_set_of_numbers(), for_all(network)?];
    if !server {
        programs.extend(for_tools()?);
    }
    for program in programs {
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

/// What the server that starts tools, and so each tool, is refused.
fn for_all(network: bool) -> io::Result<BpfProgram> {
    let mut rules: BTreeMap<i64, Vec<Rule>> =
        NEVER.iter().chain(NEVER_HERE).map(|call| (*call, Vec::new())).collect();
    for (call, mode, flags) in MODES.iter().chain(MODES_HERE) {
        rules.insert(*call, set_id(*mode, *flags)?);
    }
    let ioctls = [TIOCSTI, TIOCLINUX];
    let ioctls = ioctls.map(|code| condition(1, Len::Dword, Op::Eq, code).and_then(|c| rule(vec![c])));
    rules.insert(libc::SYS_ioctl, ioctls.into_iter().collect::<io::Result<_>>()?);
    if network {
        rules.insert(libc::SYS_socket, vec![families()?]);
    } else {
        rules.extend(SOCKETS.iter().map(|call| (*call, Vec::new())));
        rules.insert(libc::SYS_socketpair, pairs()?);
    }
    compile(rules, libc::EPERM)
}

/// Refuses the second set of numbers as a whole, as a kernel without it does. Calls of 32-bit programs, a third set, are for
/// another machine to every other program here, which then ends the process.
fn one_set_of_numbers() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let step = |code, jf, k| Step { code, jt: 0, jf, k };
    let refused = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    vec![
        step(LOAD_NUMBER, 0, 0),
        step(IF_AT_LEAST, 1, SECOND_ABI),
        step(RETURN, 0, refused.into()),
        step(RETURN, 0, SeccompAction::Allow.into()),
    ]
}

/// What a tool is refused besides. Filters are inherited: a call of the server has the others already, and to set them once
/// more would cost it 0.4 ms.
pub(crate) fn for_tools() -> io::Result<[BpfProgram; 2]> {
    let mut rules: BTreeMap<i64, Vec<Rule>> = OF_SERVERS.iter().map(|call| (*call, Vec::new())).collect();
    let flags = NEW.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        condition(0, Len::Qword, Op::MaskedEq(flag), flag).and_then(|c| rule(vec![c]))
    });
    rules.insert(libc::SYS_clone, flags.into_iter().collect::<io::Result<_>>()?);
    // Their flags lie in memory, out of a filter's sight; C libraries go on with `clone`, programs with `openat`.
    let newer = [libc::SYS_clone3, libc::SYS_openat2];
    let missing = newer.iter().chain(UNSEEN).map(|call| (*call, Vec::new())).collect();
    Ok([compile(rules, libc::EPERM)?, compile(missing, libc::ENOSYS)?])
}

/// Modes that make a program run as its owner or as its group, with flags that say that there is a mode at all: that a file
/// is made, with a name or without one, which it can be given.
fn set_id(mode: u8, flags: Option<u8>) -> io::Result<Vec<Rule>> {
    let mut rules = Vec::new();
    for bit in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
        let set = || condition(mode, Len::Dword, Op::MaskedEq(bit), bit);
        let Some(flags) = flags else {
            rules.push(rule(vec![set()?])?);
            continue;
        };
        for makes in [libc::O_CREAT, libc::O_TMPFILE].map(|flag| u64::from(flag.unsigned_abs())) {
            let made = condition(flags, Len::Dword, Op::MaskedEq(makes), makes)?;
            rules.push(rule(vec![set()?, made])?);
        }
    }
    Ok(rules)
}

/// With the network: any family of sockets but those that may be used.
fn families() -> io::Result<Rule> {
    let allowed = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let others =
        allowed.iter().map(|family| condition(0, Len::Dword, Op::Ne, u64::from(family.unsigned_abs())));
    rule(others.collect::<io::Result<_>>()?)
}

/// Without the network: pairs of any other family, and pairs for datagrams, each of which can be sent to another address than
/// the other end's. A raw one is one for datagrams.
fn pairs() -> io::Result<Vec<Rule>> {
    const KIND: u64 = 0xf;
    let mut rules =
        vec![rule(vec![condition(0, Len::Dword, Op::Ne, u64::from(libc::AF_UNIX.unsigned_abs()))?])?];
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| u64::from(kind.unsigned_abs())) {
        rules.push(rule(vec![condition(1, Len::Dword, Op::MaskedEq(KIND), kind)?])?);
    }
    Ok(rules)
}

fn condition(argument: u8, len: Len, op: Op, value: u64) -> io::Result<Condition> {
    Condition::new(argument, len, op, value).map_err(io::Error::other)
}

fn rule(conditions: Vec<Condition>) -> io::Result<Rule> {
    Rule::new(conditions).map_err(io::Error::other)
}

fn compile(rules: BTreeMap<i64, Vec<Rule>>, errno: libc::c_int) -> io::Result<BpfProgram> {
    let refused = SeccompAction::Errno(errno.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refused, machine).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

/// Filters as hexadecimal text, in the kernel's own form: what the server sets for each call.
pub(crate) fn encoded(programs: &[BpfProgram]) -> Vec<String> {
    let one = |program: &BpfProgram| {
        let mut text = String::with_capacity(program.len() * 16);
        for step in program {
            let code = step.code.to_ne_bytes();
            let k = step.k.to_ne_bytes();
            for byte in code.iter().chain(&[step.jt, step.jf]).chain(&k) {
                text.push_str(&format!("{byte:02x}"));
            }
        }
        text
    };
    programs.iter().map(one).collect()
}
