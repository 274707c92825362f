//! Figures for operators that each slice declares: their names, what they mean, and where they come from.

/// The most rows that are counted: no scrape walks a table that grows.
const MOST_COUNTED: u32 = 10_000;

/// A figure of `/metrics`.
#[derive(Debug)]
pub struct Figure {
    /// Its name, without the prefix of all figures and the suffix of its unit.
    pub name: &'static str,
    /// What it says, for people.
    pub help: &'static str,
    /// What its number is.
    pub unit: FigureUnit,
    /// Where it comes from.
    pub source: FigureSource,
}

/// What a figure's number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// A count.
    Count,
    /// A time, in milliseconds since 1970; told in seconds.
    Time,
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug)]
pub enum FigureSource {
    /// The number of rows where an expression is not NULL, of what comes after `FROM`. No more than 10,000 rows are
    /// looked at: what grows is counted so, and its condition has an index.
    Rows(&'static str, &'static str),
    /// A query of one number, over tables that stay small.
    Query(&'static str),
    /// Noted by a job.
    Noted,
}

impl Figure {
    /// The query of its number; none where it is noted.
    pub fn query(&self) -> Option<String> {
        match self.source {
            FigureSource::Rows(what, from) => Some(format!(
                "SELECT count(counted_value) FROM (SELECT {what} AS counted_value FROM {from} LIMIT {MOST_COUNTED}) AS counted"
            )),
            FigureSource::Query(query) => Some(query.to_owned()),
            FigureSource::Noted => None,
        }
    }
}
