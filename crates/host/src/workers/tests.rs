use super::{Launcher, WorkerPool};
use crate::child::{Child, Children};
use crate::environment::Environment;
use crate::host::Host;
use crate::options::RunOptions;

/// V-01: where no process can be had, that is no task's outcome.
#[tokio::test]
async fn v01_a_process_that_ends_as_it_starts_has_had_no_task() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::new(Environment::new([], folder.path().to_owned())).in_state_dir(Some(folder.path()));
    let (host, store) = host.in_open_store().unwrap();
    let begun = folder.path().join("begun");
    let script = format!("echo >> {}; exit 7", begun.display());
    let program = Launcher { program: "/bin/sh".into(), args: vec!["-c".into(), script] };
    let pool = WorkerPool::new(&host, &store, program, 1);
    let (id, name) = ("batch-1-0".to_owned(), "t1".to_owned());
    let child = Child { id, name, parent: "batch-1".into(), options: RunOptions::default() };
    let error = pool.run(child).await.unwrap_err();
    assert!(error.is_of_machine(), "{error}");
    assert!(error.to_string().contains("exit status: 7"), "{error}");
    assert_eq!(std::fs::read_to_string(begun).unwrap().lines().count(), super::STARTS);
}
