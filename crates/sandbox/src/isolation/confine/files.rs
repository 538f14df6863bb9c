//! Landlock: the same view of the file system as the mounts give, enforced a second time.

use super::Files;
use crate::exact;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::fs::{FileType, fstat};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

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
            .add_rules(path_beneath_rules(&files.system, read))?
            .add_rules(exactly(&files.read, read))?
            .add_rules(exactly(&files.listed, AccessFs::ReadDir.into()))?
            .add_rules(exactly(&files.write, all))?
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

/// Rules for places without links: one that has become a link since it was checked is left out, and so is what is not there.
fn exactly(
    places: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<OwnedFd>, RulesetError>> {
    let rule = move |place: &PathBuf| {
        let file = exact::hold(place).ok()?;
        let is_folder = FileType::from_raw_mode(fstat(&file).ok()?.st_mode) == FileType::Directory;
        let access = if is_folder { access } else { access & AccessFs::from_file(ABI::V6) };
        Some(Ok(PathBeneath::new(file, access)))
    };
    places.iter().filter_map(rule)
}
