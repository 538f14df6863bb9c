//! The process that ends what would outlive the one that started it (E-13): it is told on its stdin which process
//! groups there are, `+NUMBER` and `-NUMBER` a line, and kills those that are left when its stdin ends, as it does
//! however its parent ended.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};

/// Reads to the end, and ends what is left.
pub(super) fn watch(told: impl Read) {
    for group in left(told).into_iter().filter_map(Pid::from_raw) {
        // An error means that nobody of the group is left.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The groups that are left at the end.
fn left(told: impl Read) -> BTreeSet<i32> {
    let mut groups = BTreeSet::new();
    // What can't be read is the end as well.
    for line in BufReader::new(told).lines().map_while(Result::ok) {
        let Some((change, number)) = line.split_at_checked(1) else { continue };
        // Never our own group, which 0 would be, nor that of the first process.
        let Some(group) = number.parse().ok().filter(|number| *number > 1) else {
            continue;
        };
        match change {
            "+" => groups.insert(group),
            _ => groups.remove(&group),
        };
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_that_have_not_ended_are_left() {
        let told = "+20\n+30\n-20\n+0\n+1\n+-5\nnonsense\n\n+40\n-41\n";
        assert_eq!(left(told.as_bytes()), BTreeSet::from([30, 40]));
    }
}
