//! With `-v`, what calls tell while they are under way, and what they have printed: no line twice.

use super::telling::{Telling, name, short};
use super::{Progress, SHOWN, Said};
use crate::live::text::width;
use crate::printed::parts;
use crate::ui::Part;
use selvedge_engine::{EffectId, Printed};
use selvedge_host::timeline::Timeline;
use std::collections::HashSet;

/// Milliseconds between two lines about how far one call has come.
const BETWEEN_MS: i64 = 200;
/// Lines of each stream of a call that are shown, and what stands before them.
const PRINTED: usize = 20;
const INDENT: &str = "                 ";
/// Columns of a line before what a call tells, without the names of its node and its tool.
const BEFORE: usize = 20;
/// Lines of one call that are told as they come; from then on not more often than a person reads.
const AT_ONCE: usize = PRINTED;

/// When a call's line was last shown, what it has told since, and the lines that were shown whole.
#[derive(Default)]
pub(super) struct Told {
    shown: Option<i64>,
    held: Option<String>,
    count: usize,
    lines: HashSet<String>,
}

impl Progress {
    /// A call tells how far it has come.
    pub(super) fn told_now(
        &self,
        said: &mut Said,
        timeline: &Timeline,
        now: i64,
        effect: &EffectId,
        told: String,
    ) {
        let fits = self.fits(timeline, effect, &told);
        let last = said.told.entry(effect.clone()).or_default();
        let soon = last.shown.is_some_and(|shown| now < shown.saturating_add(BETWEEN_MS));
        if soon && last.count >= AT_ONCE {
            last.held = Some(told);
            return;
        }
        (last.shown, last.held, last.count) = (Some(now), None, last.count + 1);
        if fits {
            last.lines.insert(told.trim_end().to_owned());
        }
        self.tells(timeline, now, effect, &told);
    }

    /// Whether a line is shown whole.
    fn fits(&self, timeline: &Timeline, effect: &EffectId, told: &str) -> bool {
        let before = timeline
            .attempt(effect)
            .map_or(0, |(row, call, _)| BEFORE + width(&short(timeline, row)) + width(name(call)));
        let room = self.ui.columns().map_or(SHOWN, |columns| columns.saturating_sub(before).min(SHOWN));
        width(told) <= room && told.chars().count() <= SHOWN
    }

    fn tells(&self, timeline: &Timeline, at: i64, effect: &EffectId, told: &str) {
        let Some((row, call, _)) = timeline.attempt(effect) else { return };
        let told = self.short(told, SHOWN);
        self.line(at, ("2", "tells"), &format!("{}: {}: {told}", short(timeline, row), name(call)));
    }

    /// What a call has printed, but for the streams of which all was told.
    pub(super) fn printed(&self, printed: &Printed, told: &HashSet<String>) {
        let mut parts = parts(None, Some(printed), PRINTED);
        parts.retain(|Part { lines, left_out, .. }| {
            left_out.is_some() || lines.iter().any(|line| !told.contains(line.trim_end()))
        });
        self.ui.notice_parts(INDENT, &parts);
    }
}

impl Telling<'_> {
    /// A call has come to its end: what it told last is shown, if it was not; the lines that were shown, if those are all
    /// that it told.
    pub(super) fn told_last(&mut self, effect: &EffectId) -> HashSet<String> {
        let Some(Told { held, mut lines, .. }) = self.said.told.remove(effect) else { return HashSet::new() };
        if let Some(told) = held {
            self.lines.tells(self.timeline, self.now.at, effect, &told);
            // In its turn: lines before it are missing.
            lines.clear();
        }
        lines
    }
}
