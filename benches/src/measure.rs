//! Measuring and printing.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing measurements is what it is for")]

use crate::Result;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// A number from the environment.
pub(crate) fn setting(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The wall times of one piece of work, in seconds.
pub(crate) struct Times {
    /// Of the first run, which the median leaves out.
    pub(crate) first: f64,
    pub(crate) median: f64,
}

/// Runs something once, and then `BENCH_RUNS` times for the median.
pub(crate) fn times(mut run: impl FnMut() -> Result<f64>) -> Result<Times> {
    let runs = setting("BENCH_RUNS", 3.0) as usize;
    let first = run()?;
    let mut times = (0..runs.max(1)).map(|_| run()).collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(Times { first, median: times.get(times.len() / 2).copied().unwrap_or_default() })
}

/// The median wall time.
pub(crate) fn median(run: impl FnMut() -> Result<f64>) -> Result<f64> {
    times(run).map(|times| times.median)
}

/// Leaves nothing of ours in the processor's caches, as a model's answer that took seconds does.
pub(crate) fn chill() {
    const MORE_THAN_CACHES: usize = 128 << 20;
    let mut other = vec![1_u8; MORE_THAN_CACHES];
    other.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
    std::hint::black_box(&other);
}

/// Times one piece of work, in seconds. What it leaves behind is dropped after the time is taken.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<f64> {
    let start = Instant::now();
    let left = work()?;
    let wall = start.elapsed().as_secs_f64();
    drop(left);
    Ok(wall)
}

/// Prints one measurement.
pub(crate) fn emit(workload: &str, mut fields: Value) {
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("workload".into(), json!(workload));
        fields.insert("peer".into(), json!("selvedge"));
        fields.insert("load1".into(), json!(load1()));
        fields.insert("cpu_total_s".into(), json!(cpu_s()));
    }
    println!("{fields}");
}

/// Says on stderr what went wrong.
pub(crate) fn complain(what: &str) {
    eprintln!("bench: {what}");
}

/// How many processes wanted to run, on average over the last minute: a wall time taken while others did is none.
fn load1() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// The processor time of this process so far, in seconds: where a machine is busy it says more than the wall time.
pub(crate) fn cpu_s() -> f64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// The processor time so far of this process and of all processes below it, in hundredths of a second. What has ended
/// counts if its parent lives and has waited for it.
pub(crate) fn family_cpu_s() -> Result<f64> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        // `self` and `thread-self` are this process once more.
        if !entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
            continue;
        }
        // A process may end at any time.
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((head, fields)) = stat.rsplit_once(')') else { continue };
        // After the name, which may hold anything: the parent is field 2, the times are 12 to 15.
        let fields: Vec<f64> =
            fields.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
        let number = head.split_whitespace().next().and_then(|number| number.parse::<u32>().ok());
        let (Some(number), Some(parent)) = (number, fields.first()) else { continue };
        all.push((number, *parent as u32, fields.iter().skip(10).take(4).sum::<f64>()));
    }
    let (mut family, mut ticks) = (vec![std::process::id()], 0.0);
    while let Some(member) = family.pop() {
        ticks += all.iter().filter(|(number, ..)| *number == member).map(|(.., ticks)| ticks).sum::<f64>();
        family.extend(all.iter().filter(|(_, parent, _)| *parent == member).map(|(number, ..)| *number));
    }
    Ok(ticks / 100.0)
}

/// What a piece of work takes, in seconds: the medians of wall and of processor time.
pub(crate) struct Cost {
    /// Wall time of the first time, which the medians leave out.
    pub(crate) first_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
}

impl Cost {
    /// Both for each of `n`, in microseconds.
    pub(crate) fn us_each(&self, n: usize) -> [f64; 2] {
        [self.wall_s / n as f64 * 1e6, self.cpu_s / n as f64 * 1e6]
    }
}

/// Does the work once, and then `BENCH_RUNS` times for the medians. What it leaves behind is dropped after the time is
/// taken.
pub(crate) fn cost<T>(mut work: impl FnMut() -> Result<T>) -> Result<Cost> {
    let mut spent = Vec::new();
    let wall = times(|| {
        let before = cpu_s();
        let mut after = before;
        let wall = timed(|| {
            let left = work()?;
            after = cpu_s();
            Ok(left)
        })?;
        spent.push(after - before);
        Ok(wall)
    })?;
    spent.remove(0);
    Ok(Cost { first_s: wall.first, wall_s: wall.median, cpu_s: middle(spent) })
}

/// The median of some figures; 0 of none.
pub(crate) fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// Sizes from the environment, as numbers with commas between.
pub(crate) fn sizes(name: &str, default: &[usize]) -> Vec<usize> {
    let given = std::env::var(name).ok().map(|text| text.split(',').filter_map(|n| n.parse().ok()).collect());
    given.unwrap_or_else(|| default.to_vec())
}

/// Whether `BENCH_VARIANT`, the beginning of a variant's name, asks for it.
pub(crate) fn chosen(variant: &str) -> bool {
    std::env::var("BENCH_VARIANT").map_or(true, |wanted| variant.starts_with(&wanted))
}

/// The bytes of the files in a folder.
pub(crate) fn size(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            total += entry.metadata()?.len();
        }
    }
    Ok(total)
}

/// What synced appends of 4 KiB cost on this disk, in microseconds. A disk that others write to has its moods, so that
/// they are taken before and after what they are compared with.
pub(crate) fn fsyncs(folder: &Path) -> Result<Vec<f64>> {
    use std::io::Write;
    const APPENDS: usize = 200;
    let mut file = std::fs::File::create(folder.join("fsync"))?;
    let mut times = Vec::new();
    for _ in 0..APPENDS {
        file.write_all(&[0; 4096])?;
        let start = Instant::now();
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(folder.join("fsync"))?;
    Ok(times)
}

/// Their median, and their mean, which has the disk's pauses in it as the wall time of a durable run does.
pub(crate) fn fsync_us(before: Vec<f64>, folder: &Path) -> Result<[f64; 2]> {
    let mut times = before;
    times.extend(fsyncs(folder)?);
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok([median, times.iter().sum::<f64>() / times.len() as f64])
}

/// Runs one measurement in a process of its own: its memory is not another's, and nothing is warm that a user's
/// process would find cold.
pub(crate) fn apart(workload: &str, settings: &[(&str, &str)]) -> Result<()> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    let status = command.arg(workload).envs(settings.iter().copied()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{workload} failed").into()) }
}

/// The process's peak resident memory, in MiB.
pub(crate) fn peak_rss_mb() -> f64 {
    memory("VmHWM:")
}

/// The process's resident memory now, in MiB.
pub(crate) fn rss_mb() -> f64 {
    memory("VmRSS:")
}

fn memory(what: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    let kib: f64 = line.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}

/// A folder in `BENCH_TMP`, gone when it is dropped.
pub(crate) fn folder() -> Result<tempfile::TempDir> {
    let base = std::env::var("BENCH_TMP").unwrap_or_else(|_| "/tmp".into());
    Ok(tempfile::Builder::new().prefix("selvedge-bench").tempdir_in(base)?)
}
