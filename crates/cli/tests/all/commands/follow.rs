//! `show --follow` on a terminal (C-15).

use super::terminal::{RUN, Terminal, left_in_order, place, wait_until, watch};
use crate::support::finish;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// C-15: whoever follows a run sees times since it began, and ends the looking, not the run.
#[test]
fn a_follower_sees_the_whole_time_and_leaves_nothing_behind() {
    let place = place();
    place.write("s.yaml", "- when: {node: b}\n  reply: {text: B, delay_ms: 4000}\n- reply: {text: A}\n");
    let run = place.start(&[&RUN[..], &["-q"]].concat());
    std::thread::sleep(Duration::from_millis(1500));
    let follow = ["show", "r", "--follow"];
    let (child, master) = Terminal::new(80, 24).start(&place, &follow, &[("TERM", "xterm")]);
    let (seen, reader) = watch(master);
    wait_until(&seen, "1/2 nodes");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    finish(child).exits(130);
    reader.join().unwrap();
    let text = seen.lock().unwrap().clone();
    left_in_order(&text);
    let (_, after) = text.rsplit_once("1/2 nodes").unwrap();
    assert!(
        after.contains("\u{1b}[J") && after.contains("run r goes on, and is looked at no more"),
        "{text:?}"
    );
    let (child, master) = Terminal::new(80, 24).start(&place, &follow, &[("TERM", "xterm")]);
    let (seen, reader) = watch(master);
    finish(child).exits(0);
    reader.join().unwrap();
    let text = seen.lock().unwrap().clone();
    let total = text.lines().find(|line| line.contains("2 nodes ran")).unwrap_or_else(|| panic!("{text:?}"));
    let plain =
        total.rsplit_once(" s ").unwrap().0.rsplit([' ', 'J', 'K', '\r', 'A']).next().unwrap().to_owned();
    assert!(plain.parse::<f64>().unwrap() >= 4.0, "{total:?}");
    finish(run).exits(0);
}
