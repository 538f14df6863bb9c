//! Landlock: the same view of the file system as the mounts give, enforced a second time.

use super::Files;
use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
    path_beneath_rules,
};
use std::io;

/// Restricts this process and all that it starts; rights that the kernel does not know yet are left out.
pub(super) fn restrict(files: &Files, network: bool) -> io::Result<()> {
    let abi = ABI::V6;
    let all = AccessFs::from_all(abi);
    let read = AccessFs::from_read(abi);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::IoctlDev;
    let build = || {
        let mut ruleset = Ruleset::default().handle_access(all)?.scope(Scope::from_all(abi))?;
        if !network {
            ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
        }
        ruleset
            .create()?
            .add_rules(path_beneath_rules(&files.read, read))?
            .add_rules(path_beneath_rules(&files.listed, AccessFs::ReadDir))?
            .add_rules(path_beneath_rules(&files.write, all))?
            .add_rules(path_beneath_rules(&files.devices, device))?
            .restrict_self()
    };
    let status = build().map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => {
            Err(io::Error::other("this kernel does not have it, or has it switched off"))
        }
        _ => Ok(()),
    }
}
