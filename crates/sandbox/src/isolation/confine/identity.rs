//! Who a confined process is: root becomes a user that owns nothing, inside a user namespace in which all users
//! have their own numbers. There, it may be given the right to read what its mounts show, whatever its owner: a
//! document in a folder of mode 0700 is readable for its tools, and nothing outside of the namespace is gained.

use super::{MAP, Order};
use nix::sched::{CloneFlags, unshare};
use rustix::process::{Gid, Uid, getegid, geteuid, getpid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities,
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

/// What starting calls in namespaces of their own takes: making them, and giving each call a user of its own.
const SERVER: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL);

/// Takes on the ordered identity, keeping only the rights that the order speaks of.
pub(super) fn enter(order: &Order) -> io::Result<()> {
    let root = geteuid().is_root();
    match order.become_user {
        Some(user) if root => {
            namespace_of_root(order)?;
            let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
            set_keep_capabilities(true)?;
            set_thread_groups(&[])?;
            set_thread_res_gid(gid, gid, gid)?;
            set_thread_res_uid(uid, uid, uid)?;
            let files = match order.writes {
                true => CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER,
                false => CapabilitySet::DAC_READ_SEARCH,
            };
            keep(if order.server { files | SERVER } else { files })
        }
        _ if order.server => {
            own_namespace()?;
            keep(CapabilitySet::SYS_ADMIN)
        }
        _ if order.keep_rights => Ok(()),
        _ => keep(CapabilitySet::empty()),
    }
}

/// Whether a set of namespaces can be made inside of the sandbox.
pub(super) fn nest() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC)?)
}

/// Keeps these rights over the start of another program and gives up all others.
fn keep(rights: CapabilitySet) -> io::Result<()> {
    set_capabilities(None, CapabilitySets { effective: rights, permitted: rights, inheritable: rights })?;
    for right in rights.iter() {
        configure_capability_in_ambient_set(right, true)?;
    }
    Ok(())
}

/// A user namespace with every number of the present one, which only a process outside of it can write.
fn namespace_of_root(order: &Order) -> io::Result<()> {
    let pid = getpid().as_raw_nonzero().to_string();
    let mut helper = Command::new("/proc/self/exe")
        .args(&order.launcher)
        .args([MAP, &pid])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let made = unshare(CloneFlags::CLONE_NEWUSER);
    if let Some(mut stdin) = helper.stdin.take() {
        // Without the line, it ends and writes nothing.
        let _ = if made.is_ok() { stdin.write_all(b"go") } else { Ok(()) };
    }
    let done = helper.wait_with_output()?;
    made?;
    if done.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("user namespace: {}", String::from_utf8_lossy(&done.stderr).trim())))
    }
}

/// The helper: maps every number of this namespace to itself in that of the process `pid`.
pub(super) fn write_maps(pid: &str) -> io::Result<()> {
    let mut word = String::new();
    io::stdin().read_to_string(&mut word)?;
    if word != "go" {
        return Ok(());
    }
    for map in ["uid_map", "gid_map"] {
        let own = std::fs::read_to_string(format!("/proc/self/{map}"))?;
        std::fs::write(format!("/proc/{pid}/{map}"), identity(&own))?;
    }
    Ok(())
}

/// The map that gives each number of a namespace itself.
fn identity(own: &str) -> String {
    let ranges = own.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        Some((fields.next()?, fields.nth(1)?))
    });
    ranges.map(|(first, count)| format!("{first} {first} {count}\n")).collect()
}

/// A user namespace of a user who is not root: with the user's own number only.
fn own_namespace() -> io::Result<()> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

#[cfg(test)]
mod tests {
    use super::identity;

    #[test]
    fn every_number_is_mapped_to_itself() {
        assert_eq!(identity("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(identity("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
    }
}
