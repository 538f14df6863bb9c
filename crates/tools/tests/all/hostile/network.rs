//! Sockets of all kinds, to what listens on this machine.

use super::{Arena, machine_has};
use selvedge_sandbox::isolation::Layer::{Identity, Landlock, Namespaces, Seccomp};
use serde_json::{Value, json};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_network_is_off() {
    if !machine_has(&[Namespaces, Seccomp, Landlock]).await {
        return;
    }
    let mut arena = Arena::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    // Each layer alone: seccomp, namespaces, Landlock (TCP, Linux 6.7).
    let mut alone = vec![&[Namespaces, Landlock][..], &[Seccomp, Landlock]];
    arena.stopped("connect", &port, &alone).await;
    if kernel() >= (6, 7) {
        arena.stopped("connect", &port, &[&[Namespaces, Seccomp]]).await;
    }
    assert_eq!(
        arena.succeeds("connect", &port, &[Namespaces, Seccomp, Landlock]).await,
        json!(true),
        "loopback is open to anybody"
    );
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let port = receiver.local_addr().unwrap().port().to_string();
    alone.push(&[Landlock]);
    let mut word = [0; 16];
    for off in alone {
        // A sandbox has a loopback of its own, which takes anything and leads nowhere.
        arena.try_without(off, "datagram", &port).await;
        assert!(receiver.recv(&mut word).is_err(), "nothing comes, without {off:?}");
    }
    assert_eq!(arena.try_without(&[Namespaces, Seccomp], "datagram", &port).await, json!(6));
    assert_eq!(receiver.recv(&mut word).unwrap(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_of_other_processes_are_out_of_reach() {
    if !machine_has(&[Namespaces, Landlock, Seccomp]).await {
        return;
    }
    let mut arena = Arena::new();
    let name = format!("selvedge-test-{}", std::process::id());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let name = format!("@{name}");
    arena.stopped("unix", &name, &[&[Landlock], &[Namespaces, Landlock]]).await;
    if kernel() >= (6, 12) {
        arena.stopped("unix", &name, &[&[Namespaces, Seccomp]]).await;
    }
    assert_eq!(arena.succeeds("unix", &name, &[Namespaces, Landlock, Seccomp]).await, json!(true));
    // One with a name in the file system, as of a container's daemon.
    let path = arena.world.path("other/socket");
    let _named = UnixListener::bind(&path).unwrap();
    for (path, mode) in
        [(path.clone(), 0o777), (arena.world.path("other"), 0o755), (arena.world.path(""), 0o755)]
    {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let path = path.display().to_string();
    arena.stopped("unix", &path, &[&[Landlock], &[Seccomp], &[Namespaces, Landlock]]).await;
    assert_eq!(arena.succeeds("unix", &path, &[Namespaces, Landlock, Seccomp]).await, json!(true));
}

/// Neither a mount for reading nor Landlock keeps from a socket that lies in what was granted, as a session's bus may: without
/// the network, sockets themselves are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_in_granted_folders_are_out_of_reach() {
    if !machine_has(&[Namespaces, Landlock, Seccomp]).await {
        return;
    }
    let mut arena = Arena::new();
    let [stream, datagram] = ["stream", "datagram"].map(|name| arena.world.path("document").join(name));
    let _listener = UnixListener::bind(&stream).unwrap();
    let receiver = UnixDatagram::bind(&datagram).unwrap();
    receiver.set_nonblocking(true).unwrap();
    for path in [&stream, &datagram] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let others = [&[Namespaces, Landlock][..]];
    arena.stopped("unix", "stream", &others).await;
    assert_eq!(arena.succeeds("unix", "stream", &[Seccomp]).await, json!(true));
    let mut word = [0; 16];
    // SOCK_DGRAM, and SOCK_RAW, which is the same here.
    for kind in [2, 3] {
        let arg = format!("{kind} {}", datagram.display());
        arena.stopped("unix_datagram", &arg, &others).await;
        assert!(receiver.recv(&mut word).is_err(), "nothing comes");
        assert_eq!(arena.succeeds("unix_datagram", &arg, &[Seccomp]).await, json!(6));
        while receiver.recv(&mut word).is_ok() {}
    }
    if cfg!(target_arch = "x86_64") {
        arena.stopped("socket_of_another_machine", "", &others).await;
        arena.succeeds("socket_of_another_machine", "", &[Seccomp]).await;
    }
    // Nor does a tool make sockets that others connect to.
    let own = arena.world.path("scratch/socket").display().to_string();
    arena.stopped("serve", &own, &others).await;
}

/// what stays is a pair between a tool's own processes, by which event loops and interpreters work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pairs_of_sockets_stay() {
    if !machine_has(&[Namespaces, Landlock, Seccomp]).await {
        return;
    }
    let mut arena = Arena::new();
    // In a warm interpreter, and in one of its own.
    for off in [&[][..], &[Landlock]] {
        for kind in ["1 1 0", "1 5 0"] {
            assert_eq!(arena.try_without(off, "pair", kind).await, json!(true), "{kind} {off:?}");
        }
        assert_eq!(arena.try_without(off, "loops", "").await, json!(["said", [3, 7], "piped"]), "{off:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_families_of_sockets_are_refused() {
    if !machine_has(&[Seccomp, Identity]).await {
        return;
    }
    let mut arena = Arena::new();
    // AF_VSOCK, to the machine that runs this one; AF_NETLINK, to the kernel; AF_ALG, to its ciphers.
    for family in ["40 1 0", "16 3 0", "38 5 0"] {
        arena.stopped("open_socket", family, &[&[Namespaces, Landlock]]).await;
        arena.succeeds("open_socket", family, &[Seccomp]).await;
    }
    // Raw and packet sockets: with the network, it takes root's rights too.
    for family in ["2 3 1", "17 3 768"] {
        arena.stopped("open_socket", family, &[&[Seccomp], &[Namespaces, Landlock]]).await;
        arena.succeeds("open_socket", family, &[Seccomp, Namespaces, Identity]).await;
    }
    arena.stopped("open_socket", "1 1 0", &[&[Namespaces, Landlock]]).await;
    assert_ne!(arena.try_without(&[Seccomp], "open_socket", "2 1 0").await, Value::Null);
}

/// The version of the kernel: some of what Landlock holds came later.
fn kernel() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap(), parts.next().unwrap())
}
