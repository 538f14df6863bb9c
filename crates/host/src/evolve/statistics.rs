//! Intervals, and what a tool was worth by them (V-04, V-13).

use selvedge_world::rng::Rng;
use serde::{Deserialize, Serialize};

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;
/// Resamples of a bootstrap.
const RESAMPLES: usize = 10_000;
/// What all that is drawn follows from: the same tasks give the same interval.
const SEED: u64 = 13;
/// Differences of the mean score up to this say that a tool makes none.
const MARGIN: f64 = 0.05;
/// Fewer tasks tell nothing: of five that a tool makes no difference to, all come out better or all worse one time in sixteen.
const FEWEST: usize = 6;

/// Where a value lies with 95 % confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The Wilson interval of a share; `None` of nothing.
pub fn wilson(right: u64, of: u64) -> Option<Interval> {
    if of == 0 {
        return None;
    }
    let (n, share) = (of as f64, right.min(of) as f64 / of as f64);
    let scale = 1.0 + Z * Z / n;
    let middle = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some(Interval { low: (middle - half).max(0.0), high: (middle + half).min(1.0) })
}

/// The scores of one task, each from 0 to 1: with a tool or library, and without it or with another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// With it.
    pub with: f64,
    /// Without it.
    pub without: f64,
}

/// What a tool, or a library before another one, is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Tasks come out better with it.
    Keeps,
    /// They come out the same, as far as matters.
    Useless,
    /// They come out worse with it.
    Harmful,
    /// These tasks can't tell.
    NotEnoughTasks,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keeps => "keeps",
            Self::Useless => "useless",
            Self::Harmful => "harmful",
            Self::NotEnoughTasks => "not enough tasks",
        }
    }
}

/// A paired comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Tasks that were done both ways.
    pub tasks: usize,
    /// The mean score with it.
    pub with: f64,
    /// The mean score without it.
    pub without: f64,
    /// The difference of the two.
    pub difference: f64,
    /// Where that lies with 95 % confidence.
    pub interval: Interval,
    /// What follows.
    pub verdict: Verdict,
}

/// Compares scores by pairs, with a bootstrap of the mean difference; `None` of nothing.
pub fn compare(pairs: &[Pair]) -> Option<Comparison> {
    if pairs.is_empty() {
        return None;
    }
    let n = pairs.len() as f64;
    let mean = |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let differences: Vec<f64> = pairs.iter().map(|pair| pair.with - pair.without).collect();
    let (with, without) = (mean(|pair| pair.with), mean(|pair| pair.without));
    let difference = differences.iter().sum::<f64>() / n;
    let interval = bootstrap(&differences);
    let verdict = verdict(pairs.len(), interval);
    Some(Comparison { tasks: pairs.len(), with, without, difference, interval, verdict })
}

fn verdict(tasks: usize, Interval { low, high }: Interval) -> Verdict {
    match () {
        () if tasks < FEWEST => Verdict::NotEnoughTasks,
        () if low > 0.0 => Verdict::Keeps,
        () if high < 0.0 => Verdict::Harmful,
        () if low >= -MARGIN && high <= MARGIN => Verdict::Useless,
        () => Verdict::NotEnoughTasks,
    }
}

/// The percentile interval of the mean of these. Where no task came out differently, resamples show nothing: then it is that of the rule
/// of three.
fn bootstrap(differences: &[f64]) -> Interval {
    let n = differences.len();
    if differences.iter().all(|difference| *difference == 0.0) {
        let most = (3.0 / n as f64).min(1.0);
        return Interval { low: -most, high: most };
    }
    let mut rng = Rng::new(SEED);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| (0..n).filter_map(|_| rng.pick(differences)).sum::<f64>() / n as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    Interval { low: quantile(&means, 0.025), high: quantile(&means, 0.975) }
}

/// A quantile of sorted values, between two of them by their distance.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * sorted.len().saturating_sub(1) as f64;
    let value = |at: f64| sorted.get(at as usize).copied().unwrap_or_default();
    let (below, above) = (value(at.floor()), value(at.ceil()));
    below + (above - below) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn reference() -> Value {
        serde_json::from_str(include_str!("statistics/reference.json")).unwrap()
    }

    fn number(value: &Value, field: &str) -> f64 {
        value[field].as_f64().unwrap()
    }

    /// V-04: as statsmodels has it (`proportion_confint`, `wilson`).
    #[test]
    fn v04_wilson_intervals_are_those_of_statsmodels() {
        let reference = reference();
        let cases = reference["wilson"].as_array().unwrap();
        assert_eq!(cases.len(), 10);
        for case in cases {
            let found = wilson(case["right"].as_u64().unwrap(), case["of"].as_u64().unwrap()).unwrap();
            for (found, field) in [(found.low, "low"), (found.high, "high")] {
                assert!((found - number(case, field)).abs() < 1e-12, "{case}: {found}");
            }
        }
        assert_eq!(wilson(0, 0), None);
    }

    /// V-13: as scipy has it (`bootstrap` of the mean of the differences, `percentile`), but for what is drawn: ends differ by less than
    /// a seventh of the standard error, or one task where scores are 0 or 1.
    #[test]
    fn v13_bootstrap_intervals_are_those_of_scipy() {
        let reference = reference();
        let cases = reference["paired"].as_array().unwrap();
        assert_eq!(cases.len(), 5);
        for case in cases {
            let scores = |field: &str| -> Vec<f64> {
                case[field].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect()
            };
            let (with, without) = (scores("with"), scores("without"));
            let whole = with.iter().chain(&without).all(|score| score.fract() == 0.0);
            let pairs: Vec<Pair> = with
                .iter()
                .zip(&without)
                .map(|(with, without)| Pair { with: *with, without: *without })
                .collect();
            let found = compare(&pairs).unwrap();
            assert!((found.difference - number(case, "difference")).abs() < 1e-9, "{case}");
            let step = if whole { 1.0 / pairs.len() as f64 + 1e-9 } else { 0.0 };
            let near = step.max(number(case, "error") / 7.0);
            for (found, field) in [(found.interval.low, "low"), (found.interval.high, "high")] {
                assert!((found - number(case, field)).abs() <= near, "{}: {found}", case["name"]);
            }
            assert_eq!(compare(&pairs), Some(found), "the seed is fixed");
        }
    }

    /// V-13: what a tool is worth, and where tasks can't tell.
    #[test]
    fn v13_verdicts_follow_from_the_interval() {
        let of = |better: usize, worse: usize, same: usize| {
            let pair = |with, without, count| std::iter::repeat_n(Pair { with, without }, count);
            let pairs: Vec<Pair> =
                pair(1.0, 0.0, better).chain(pair(0.0, 1.0, worse)).chain(pair(1.0, 1.0, same)).collect();
            compare(&pairs).map(|found| found.verdict)
        };
        assert_eq!(of(10, 0, 10), Some(Verdict::Keeps));
        assert_eq!(of(0, 10, 10), Some(Verdict::Harmful));
        assert_eq!(of(0, 0, 60), Some(Verdict::Useless));
        assert_eq!(of(0, 0, 59), Some(Verdict::NotEnoughTasks), "three of a hundred are not excluded");
        assert_eq!(of(5, 0, 0), Some(Verdict::NotEnoughTasks), "chance does that one time in sixteen");
        assert_eq!(of(6, 0, 0), Some(Verdict::Keeps));
        assert_eq!(of(6, 5, 10), Some(Verdict::NotEnoughTasks));
        assert_eq!(of(4, 4, 1_000), Some(Verdict::Useless));
        assert_eq!(compare(&[]), None);
    }
}
