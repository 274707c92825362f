//! Results: samples by workload, engine, number of users and round.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};

use crate::fault::{Context as _, Result};

/// Figures by name; a name ends with the unit.
pub type Figures = BTreeMap<String, f64>;

/// Figures from pairs.
pub fn figures<const N: usize>(pairs: [(&str, f64); N]) -> Figures {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// One run of one workload.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The workload's name in the tables.
    pub workload: String,
    /// The engine or peer.
    pub engine: String,
    /// The number of seeded users.
    pub users: u64,
    /// The run that measured it, as an index.
    pub run: usize,
    /// The interleaved round, from 0.
    pub round: u64,
    /// The measured figures.
    pub figures: Figures,
}

/// A constant load over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The engine.
    pub engine: String,
    /// The number of seeded users.
    pub users: u64,
    /// The figures of each interval.
    pub intervals: Vec<Figures>,
}

/// All results.
#[derive(Default)]
pub struct Results {
    /// The runs, the current one last: facts about each and its machine, by name.
    pub runs: Vec<BTreeMap<String, String>>,
    /// What they measured.
    pub samples: Vec<Sample>,
    /// The long runs.
    pub timelines: Vec<Timeline>,
}

/// The median of some numbers.
pub fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle)?;
    if numbers.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(upper, *numbers.get(middle - 1)?))
}

impl Sample {
    fn is_of(&self, workload: &str, engine: &str, users: u64) -> bool {
        self.workload == workload && self.engine == engine && self.users == users
    }
}

impl Results {
    /// Reads the results of earlier runs.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).context(format!("cannot read {}", file.display()))?;
        let stored: Value = serde_json::from_str(&text).context("the earlier results")?;
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let figures = |value: &Value| -> Figures {
            let members = value.as_object().into_iter().flatten();
            members.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
        };
        let facts = |run: &Value| -> BTreeMap<String, String> {
            run.as_object().into_iter().flatten().map(|(name, _)| (name.clone(), text(run, name))).collect()
        };
        let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or(0);
        let sample = |value: &Value| Sample {
            workload: text(value, "workload"),
            engine: text(value, "engine"),
            users: number(value, "users"),
            run: usize::try_from(number(value, "run")).unwrap_or(0),
            round: number(value, "round"),
            figures: figures(&value["figures"]),
        };
        let timeline = |value: &Value| Timeline {
            engine: text(value, "engine"),
            users: number(value, "users"),
            intervals: list_of(value, "pieces").map(figures).collect(),
        };
        Ok(Self {
            runs: list_of(&stored, "runs").map(facts).collect(),
            samples: list_of(&stored, "samples").map(sample).collect(),
            timelines: list_of(&stored, "timelines").map(timeline).collect(),
        })
    }

    /// Begins a run: what is added belongs to it.
    pub fn begin_run(&mut self, facts: BTreeMap<String, String>) {
        self.runs.push(facts);
    }

    /// Adds a sample of the current run, and prints it. Samples of earlier runs of the same workload, engine and size are
    /// dropped.
    pub fn add(&mut self, workload: &str, engine: &str, users: u64, round: u64, figures: Figures) {
        let texts: Vec<String> =
            figures.iter().map(|(name, value)| format!("{name}={}", short(*value))).collect();
        eprintln!("{users:>8} {workload:<34} {engine:<9} {}", texts.join(" "));
        let run = self.runs.len().saturating_sub(1);
        self.samples.retain(|sample| sample.run == run || !sample.is_of(workload, engine, users));
        let (workload, engine) = (workload.to_owned(), engine.to_owned());
        self.samples.push(Sample { workload, engine, users, run, round, figures });
    }

    /// Adds a constant load over time, in place of an earlier one of the same engine and size.
    pub fn add_timeline(&mut self, new: Timeline) {
        self.timelines.retain(|line| line.engine != new.engine || line.users != new.users);
        self.timelines.push(new);
    }

    /// Removes the earlier runs that have no samples any more.
    pub fn remove_empty_runs(&mut self) {
        for run in (0..self.runs.len().saturating_sub(1)).rev() {
            if self.samples.iter().all(|sample| sample.run != run) {
                self.runs.remove(run);
                for sample in self.samples.iter_mut().filter(|sample| sample.run > run) {
                    sample.run -= 1;
                }
            }
        }
    }

    /// The run that measured a workload.
    pub fn run_of(&self, workload: &str, engine: &str, users: u64) -> Option<usize> {
        Some(self.samples.iter().find(|sample| sample.is_of(workload, engine, users))?.run)
    }

    /// The figures by run and round.
    fn rounds(&self, workload: &str, engine: &str, users: u64, figure: &str) -> BTreeMap<(usize, u64), f64> {
        let matching = self.samples.iter().filter(|sample| sample.is_of(workload, engine, users));
        matching
            .filter_map(|sample| Some(((sample.run, sample.round), *sample.figures.get(figure)?)))
            .collect()
    }

    /// The median of a figure over the rounds.
    pub fn median(&self, workload: &str, engine: &str, users: u64, figure: &str) -> Option<f64> {
        median(self.rounds(workload, engine, users, figure).into_values().collect())
    }

    /// The median of the ratios of two engines, each within one round.
    pub fn ratio(&self, workload: &str, engines: (&str, &str), users: u64, figure: &str) -> Option<f64> {
        let below = self.rounds(workload, engines.1, users, figure);
        let above = self.rounds(workload, engines.0, users, figure);
        let ratios = above.iter().filter_map(|(round, value)| Some(value / below.get(round)?));
        median(ratios.filter(|ratio| ratio.is_finite()).collect())
    }

    /// All numbers of users, ascending.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.samples.iter().map(|sample| sample.users).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// All workloads, in the order in which they ran first.
    pub fn workloads(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for sample in &self.samples {
            if !names.contains(&sample.workload.as_str()) {
                names.push(&sample.workload);
            }
        }
        names
    }

    /// The results as JSON.
    pub fn json(&self) -> Value {
        let samples: Vec<Value> = self
            .samples
            .iter()
            .map(|sample| {
                json!({
                    "workload": sample.workload, "engine": sample.engine, "users": sample.users,
                    "run": sample.run, "round": sample.round, "figures": sample.figures,
                })
            })
            .collect();
        let timelines: Vec<Value> = self
            .timelines
            .iter()
            .map(|line| json!({ "engine": line.engine, "users": line.users, "pieces": line.intervals }))
            .collect();
        json!({ "runs": self.runs, "samples": samples, "timelines": timelines })
    }
}

/// The members of an array in an object.
fn list_of<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// A number with three significant digits.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || value == 0.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Results, figures};

    fn measure(results: &mut Results, date: &str, workloads: &[&str]) {
        results.begin_run([("date".to_owned(), date.to_owned())].into());
        for workload in workloads {
            for round in 0..2 {
                results.add(workload, "sqlite", 1_000, round, figures([("rate", 1.0)]));
            }
            // as after each workload of a run
            results.remove_empty_runs();
        }
    }

    fn dates(results: &Results) -> Vec<&str> {
        results.runs.iter().map(|run| run["date"].as_str()).collect()
    }

    /// What is measured again replaces what an earlier run measured; the rest stays, with the facts of its run.
    #[test]
    fn samples_of_an_earlier_run_stay_until_they_are_measured_again() {
        let file = std::env::temp_dir().join(format!("chancery-bench-results-{}", std::process::id()));
        let mut results = Results::default();
        measure(&mut results, "2026-01-01", &["read", "create"]);
        std::fs::write(&file, results.json().to_string()).unwrap();
        let mut results = Results::read(&file).unwrap();
        std::fs::remove_file(file).unwrap();
        measure(&mut results, "2026-01-02", &["page", "read"]);
        assert_eq!((dates(&results), results.samples.len()), (vec!["2026-01-01", "2026-01-02"], 6));
        assert_eq!(results.run_of("read", "sqlite", 1_000), Some(1));
        assert_eq!(results.run_of("create", "sqlite", 1_000), Some(0));
        measure(&mut results, "2026-01-03", &["create"]);
        assert_eq!((dates(&results), results.samples.len()), (vec!["2026-01-02", "2026-01-03"], 6));
    }
}
