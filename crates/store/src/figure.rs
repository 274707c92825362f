//! Metrics of each slice: names, meaning and source.

/// The most rows that are counted: no scrape walks a growing table.
const MAX_COUNTED: u32 = 10_000;

/// A metric of `/metrics`.
#[derive(Debug)]
pub struct Figure {
    /// The metric's name, without the common prefix and the suffix of its unit.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The unit of the value.
    pub unit: FigureUnit,
    /// The source of the value.
    pub source: FigureSource,
}

/// The unit of a metric's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// A count.
    Count,
    /// A time, in milliseconds since 1970; exported in seconds.
    Time,
}

/// The source of a metric's value.
#[derive(Clone, Copy, Debug)]
pub enum FigureSource {
    /// The number of rows where an expression (first) is not NULL, in the text after `FROM` (second). At most
    /// 10,000 rows are read: for growing tables, with an index for the condition.
    Rows(&'static str, &'static str),
    /// A query that returns one number, over tables that stay small.
    Query(&'static str),
    /// Recorded by a job.
    Recorded,
}

impl Figure {
    /// The query for the value; `None` where a job records it.
    pub fn query(&self) -> Option<String> {
        match self.source {
            FigureSource::Rows(expression, from) => Some(format!(
                "SELECT count(counted_value) FROM (SELECT {expression} AS counted_value FROM {from} LIMIT {MAX_COUNTED}) AS counted"
            )),
            FigureSource::Query(query) => Some(query.to_owned()),
            FigureSource::Recorded => None,
        }
    }
}
