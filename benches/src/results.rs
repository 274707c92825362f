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

impl Results {
    /// Adds a run, and prints it.
    pub fn add(&mut self, workload: &str, engine: &str, users: u64, round: u64, figures: Figures) {
        let texts: Vec<String> =
            figures.iter().map(|(name, value)| format!("{name}={}", short(*value))).collect();
        eprintln!("{users:>8} {workload:<34} {engine:<9} {}", texts.join(" "));
        let (workload, engine) = (workload.to_owned(), engine.to_owned());
        let run = self.runs.len().saturating_sub(1);
        self.samples.push(Sample { workload, engine, users, run, round, figures });
    }

    /// The run that measured a workload.
    pub fn run_of(&self, workload: &str, engine: &str, users: u64) -> Option<usize> {
        let of = |sample: &&Sample| {
            sample.workload == workload && sample.engine == engine && sample.users == users
        };
        Some(self.samples.iter().find(of)?.run)
    }

    /// The figures by run and round.
    fn rounds(&self, workload: &str, engine: &str, users: u64, figure: &str) -> BTreeMap<(usize, u64), f64> {
        let of = |sample: &&Sample| {
            sample.workload == workload && sample.engine == engine && sample.users == users
        };
        let matching = self.samples.iter().filter(of);
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

    /// Adds the samples of an earlier run whose workload, engine and size were not measured again.
    pub fn merge_earlier(&mut self, file: &Path) -> Result<()> {
        let Ok(text) = fs::read_to_string(file) else { return Ok(()) };
        let earlier: Value = serde_json::from_str(&text).context("the earlier results")?;
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let read = |value: &Value| -> Figures {
            let members = value.as_object().into_iter().flatten();
            members.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))).collect()
        };
        let facts = |run: &Value| -> BTreeMap<String, String> {
            run.as_object().into_iter().flatten().map(|(name, _)| (name.clone(), text(run, name))).collect()
        };
        let mut runs: Vec<_> = list_of(&earlier, "runs").map(facts).collect();
        for sample in &mut self.samples {
            sample.run += runs.len();
        }
        let mut merged = Vec::new();
        for value in list_of(&earlier, "samples") {
            let (workload, engine) = (text(value, "workload"), text(value, "engine"));
            let users = value["users"].as_u64().unwrap_or(0);
            let is_same_run =
                |new: &Sample| new.workload == workload && new.engine == engine && new.users == users;
            if !self.samples.iter().any(is_same_run) {
                let round = value["round"].as_u64().unwrap_or(0);
                let run = value["run"].as_u64().and_then(|run| usize::try_from(run).ok()).unwrap_or(0);
                merged.push(Sample { workload, engine, users, run, round, figures: read(&value["figures"]) });
            }
        }
        merged.append(&mut self.samples);
        self.samples = merged;
        runs.append(&mut self.runs);
        self.runs = runs;
        self.forget_unused_runs();
        for value in list_of(&earlier, "timelines") {
            let (engine, users) = (text(value, "engine"), value["users"].as_u64().unwrap_or(0));
            if !self.timelines.iter().any(|new| new.engine == engine && new.users == users) {
                let intervals = value["pieces"].as_array().into_iter().flatten().map(read).collect();
                self.timelines.push(Timeline { engine, users, intervals });
            }
        }
        Ok(())
    }
}

impl Results {
    /// Drops runs of which nothing is left but the last one.
    fn forget_unused_runs(&mut self) {
        for run in (0..self.runs.len().saturating_sub(1)).rev() {
            if self.samples.iter().any(|sample| sample.run == run) {
                continue;
            }
            self.runs.remove(run);
            for sample in self.samples.iter_mut().filter(|sample| sample.run > run) {
                sample.run -= 1;
            }
        }
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

    fn measured(date: &str, workload: &str, rate: f64) -> Results {
        let run = [("date".to_owned(), date.to_owned())].into();
        let mut results = Results { runs: vec![run], ..Results::default() };
        results.add(workload, "sqlite", 1_000, 0, figures([("rate", rate)]));
        results
    }

    /// What was measured again replaces what an earlier run measured; the rest stays, with the facts of its run.
    #[test]
    fn samples_of_an_earlier_run_stay_until_they_are_measured_again() {
        let folder = std::env::temp_dir().join(format!("chancery-bench-merge-{}", std::process::id()));
        let save = |mut results: Results| {
            results.merge_earlier(&folder).unwrap();
            std::fs::write(&folder, results.json().to_string()).unwrap();
            results
        };
        let mut first = measured("2026-01-01", "read", 1.0);
        first.add("create", "sqlite", 1_000, 0, figures([("rate", 2.0)]));
        save(first);
        let both = save(measured("2026-01-02", "read", 3.0));
        assert_eq!((both.runs.len(), both.samples.len()), (2, 2));
        assert_eq!(both.median("read", "sqlite", 1_000, "rate"), Some(3.0));
        assert_eq!(both.run_of("read", "sqlite", 1_000), Some(1));
        assert_eq!(both.run_of("create", "sqlite", 1_000), Some(0));
        let last = save(measured("2026-01-03", "create", 4.0));
        assert_eq!(
            last.runs.iter().map(|run| run["date"].as_str()).collect::<Vec<_>>(),
            ["2026-01-02", "2026-01-03"]
        );
        std::fs::remove_file(folder).unwrap();
    }
}
