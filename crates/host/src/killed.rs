//! What tools have made that were cut off by the end of a Selvedge that was killed.

#[cfg(target_os = "linux")]
pub use linux::{end, note_calls, refuse_of_tool, settle};

#[cfg(target_os = "linux")]
mod linux {
    use crate::environment::Environment;
    use crate::error::Error;
    use crate::observer::Observer;
    use crate::places;
    use crate::text::one_line;
    use selvedge_sandbox::isolation::is_tools_number;
    use selvedge_sandbox::process::{no_more_calls, note_calls_in, settle_killed_calls};
    use selvedge_tools::leftovers::{set_aside, still_there};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::sync::Once;

    /// Sets aside what such tools have made, before anything is read, and says so.
    ///
    /// # Errors
    /// `Environment` where something of it can't be set aside.
    pub fn settle(environment: &Environment, told: &dyn Fn(&str)) -> Result<(), Error> {
        let Some(folder) = places::open_calls(environment) else { return Ok(()) };
        let calls = settle_killed_calls(&folder).map_err(|why| {
            let folder = folder.display();
            let message =
                format!("what tools of a killed selvedge have left can't be looked for in {folder}: {why}");
            Error::environment("A-20", "open-calls", &message)
                .help(&format!("make {folder} a folder that you can read and write, or remove it"))
        })?;
        for said in calls.iter().filter_map(set_aside) {
            told(&one_line(&said, usize::MAX));
        }
        match calls.iter().find_map(|call| Some((call, still_there(call)?))) {
            None => Ok(()),
            Some((call, said)) => Err(Error::environment("A-20", "left-by-tool", &said).help(&format!(
                "look at these places yourself, rename or remove what you have not made, and start the command again; if it \
                 says the same then, remove its note {}",
                call.note.display()
            ))),
        }
    }

    /// Has the calls of this process noted, so that a later one can do this for it. Where they can't be, a warning says so once.
    pub fn note_calls(environment: &Environment, observer: &dyn Observer) {
        static SAID: Once = Once::new();
        let (why, instead) = match places::open_calls(environment) {
            Some(folder) => match note_calls_in(&folder) {
                Ok(()) => return,
                Err(why) => (
                    format!("calls of tools can't be noted in {} ({why})", folder.display()),
                    "XDG_DATA_HOME to a folder that can be written",
                ),
            },
            None => (
                "calls of tools are noted nowhere, as neither HOME nor XDG_DATA_HOME is set".to_owned(),
                "XDG_DATA_HOME to a folder of your own, outside of what tools may write",
            ),
        };
        SAID.call_once(|| {
            observer.warning(&format!(
                "{why}: should this process be killed, nobody looks through what its tools have made (A-20); set {instead}"
            ));
        });
    }

    /// Refuses a configuration that belongs to a tool: whoever ran it did not get to set it aside.
    ///
    /// # Errors
    /// `Environment` with the file.
    pub fn refuse_of_tool(file: &Path) -> Result<(), Error> {
        let owner = file.metadata().map(|meta| meta.uid()).ok().filter(|owner| is_tools_number(*owner));
        let Some(owner) = owner else { return Ok(()) };
        let path = file.display();
        let message = format!(
            "{path} was made by a tool, whose user {owner} it belongs to: it is no configuration, as it could start programs \
             outside of any sandbox (A-20)"
        );
        Err(Error::environment("A-20", "config-of-tool", &message).help(&format!(
            "look at it, then remove it; to keep it, make it your own: chown {} {path}",
            rustix::process::geteuid().as_raw()
        )))
    }

    /// Nothing is called any more.
    pub fn end() {
        no_more_calls();
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use crate::environment::Environment;
    use crate::error::Error;
    use crate::observer::Observer;

    /// Nothing is looked through there.
    ///
    /// # Errors
    /// None.
    pub fn settle(_environment: &Environment, _told: &dyn Fn(&str)) -> Result<(), Error> {
        Ok(())
    }

    /// No tool has a user of its own there.
    ///
    /// # Errors
    /// None.
    pub fn refuse_of_tool(_file: &std::path::Path) -> Result<(), Error> {
        Ok(())
    }

    /// Nothing is noted there.
    pub fn note_calls(_environment: &Environment, _observer: &dyn Observer) {}

    /// Nothing is to be ended there.
    pub fn end() {}
}
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{end, note_calls, refuse_of_tool, settle};
