//! The report: tables of results and aims, and the files they are written to.

use std::{fmt::Write as _, fs, path::Path};

use crate::{
    aims::{Aim, Bound, aims},
    chart,
    fault::{Context as _, Result},
    results::{Results, short},
};

/// The file with all results, in a folder of documentation.
pub const RESULTS: &str = "benchmarks/results.json";

const HEAD: &str = "# Performance

Made by `cargo run --release -p chancery-bench -- --out docs`; do not edit. Each figure is the median of the rounds of one run, in which what is
compared runs in turn. A figure that falls short of its aim is explained in [benchmarks.md](benchmarks.md#shortcomings); that page
has the method, and [benchmarks/results.md](benchmarks/results.md) all figures.

";

/// The performance of the server: each figure that has an aim, with the reason where it falls short.
pub fn performance(results: &Results) -> String {
    let mut out = String::from(HEAD);
    write_runs(results, &mut out);
    out.push_str("\n## Aims\n\n| workload | engine | figure | aim |");
    let sizes = results.sizes();
    for users in &sizes {
        let _ = write!(out, " {} users |", grouped(*users));
    }
    out.push_str("\n|---|---|---|---|");
    out.push_str(&"---:|".repeat(sizes.len()));
    out.push('\n');
    for aim in aims() {
        write_aim(results, &aim, &mut out);
    }
    out
}

/// The facts of each run, and what marks its figures.
fn write_runs(results: &Results, out: &mut String) {
    for (index, facts) in results.runs.iter().enumerate() {
        let facts: Vec<String> = facts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let mark = mark(results, index);
        let figures = if mark.is_empty() { "Figures without a mark" } else { "Figures marked" };
        let _ = writeln!(out, "- {figures}{mark}: {}", facts.join("; "));
    }
}

/// What marks a figure of a run: nothing where it is the last.
fn mark(results: &Results, run: usize) -> String {
    if run + 1 == results.runs.len() { String::new() } else { format!(" [{}]", run + 1) }
}

/// What marks the figures of a workload.
fn mark_of(results: &Results, workload: &str, engine: &str, users: u64) -> String {
    results.run_of(workload, engine, users).map_or_else(String::new, |run| mark(results, run))
}

/// The row of an aim; nothing if it was not measured.
fn write_aim(results: &Results, aim: &Aim, out: &mut String) {
    let sizes = results.sizes();
    let measured: Vec<Option<f64>> = sizes.iter().map(|users| aim.measured(results, *users)).collect();
    if measured.iter().all(Option::is_none) {
        return;
    }
    let (mut bound, mut cells) = (String::new(), String::new());
    for (users, value) in sizes.iter().zip(measured) {
        let Some(value) = value else {
            cells.push_str(" |");
            continue;
        };
        let (bound_text, verdict) = aim.evaluate(results, *users, value);
        let mark = mark_of(results, aim.workload, aim.engine, *users);
        if matches!(aim.bound, Bound::ByDisk(..)) {
            // each size was measured on the disk of its own time
            let _ = write!(cells, " {}{mark}{verdict}: {bound_text} |", short(value));
            bound = String::from("2.9 to 7");
        } else {
            let _ = write!(cells, " {}{mark}{verdict} |", short(value));
            bound = bound_text;
        }
    }
    let _ = writeln!(out, "| {} | {} | {} | {bound} |{cells}", aim.workload, aim.engine, aim.about);
}

/// All figures as markdown.
pub fn markdown(results: &Results) -> String {
    let mut out = String::from(
        "# What was measured\n\nMade by `chancery-bench`; do not edit. [performance.md](../performance.md) compares figures with their aims.\n\n",
    );
    write_runs(results, &mut out);
    out.push_str("\n## Figures\n\nMedians of the rounds. `_us` and `_ms` are times, `cpu_us` is the server's CPU for one operation \
        (one row where many are read or written), `db_cpu_us` that of PostgreSQL's processes.\n\n");
    for workload in results.workloads() {
        write_figures(results, workload, &mut out);
    }
    for line in &results.timelines {
        let _ = writeln!(
            out,
            "### Constant creates, {}, {} users\n\n| second | rate | p50 ms | p99 ms | max ms | log MiB | resident MiB |\n\
             |---:|---:|---:|---:|---:|---:|---:|",
            line.engine,
            grouped(line.users)
        );
        for interval in &line.intervals {
            let cell = |name: &str| interval.get(name).map_or_else(String::new, |value| short(*value));
            let names = ["second", "rate", "p50_ms", "p99_ms", "max_ms", "wal_mib", "rss_mib"];
            let cells: Vec<String> = names.into_iter().map(cell).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        out.push('\n');
    }
    out
}

fn write_figures(results: &Results, workload: &str, out: &mut String) {
    let of = |sample: &&crate::results::Sample| sample.workload == workload;
    let mut names: Vec<&str> = Vec::new();
    let mut lines: Vec<(u64, &str)> = Vec::new();
    for sample in results.samples.iter().filter(of) {
        for name in sample.figures.keys() {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        if !lines.contains(&(sample.users, &sample.engine)) {
            lines.push((sample.users, &sample.engine));
        }
    }
    lines.sort_unstable();
    let _ = writeln!(out, "### {workload}\n\n| users | engine | {} |", names.join(" | "));
    let _ = writeln!(out, "|---:|---|{}", "---:|".repeat(names.len()));
    for (users, engine) in lines {
        let cell =
            |name: &&str| results.median(workload, engine, users, name).map_or_else(String::new, short);
        let cells: Vec<String> = names.iter().map(cell).collect();
        let mark = mark_of(results, workload, engine, users);
        let _ = writeln!(out, "| {}{mark} | {engine} | {} |", grouped(users), cells.join(" | "));
    }
    out.push('\n');
}

/// A number with commas.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes results, tables and pictures to a folder of documentation: `docs/performance.md`, and the others to `docs/benchmarks`.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    let write_file =
        |name: &str, text: String| fs::write(folder.join(name), text).context(format!("cannot write {name}"));
    write_file(RESULTS, serde_json::to_string_pretty(&results.json())? + "\n")?;
    write_file("benchmarks/results.md", markdown(results))?;
    write_file("benchmarks/growth.svg", chart::growth(results))?;
    if !results.timelines.is_empty() {
        write_file("benchmarks/sustained.svg", chart::sustained(results))?;
    }
    write_file("performance.md", performance(results))
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn commas() {
        assert_eq!([1, 999, 1000, 1_234_567].map(grouped), ["1", "999", "1,000", "1,234,567"]);
    }
}
