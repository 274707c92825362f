//! The rows of an act: those that were chosen, or all that match what the list shows.

use std::collections::{HashMap, HashSet};

use chancery_resource::{MAX_COUNT, Problem, Unchanged};
use serde_json::Value;

use super::{Act, Asked, kept};
use crate::{
    pages::{
        list::{MOST_FOUND, cursor_of, filter, searching},
        look_up::{Reading, rows_by},
    },
    shell::{
        directory::{Resource, key_of, title_of},
        visit::{Parameters, Visit, nothing_here, one},
    },
};

/// Rows of a piece whose own members can be many.
const PIECE_OF_LARGE: usize = 50;

/// A row that an act is about.
pub struct Target {
    /// Its key.
    pub key: String,
    /// What it is called.
    pub title: String,
    /// Its concurrency token, where it has one.
    pub token: String,
}

/// The rows of an act.
#[derive(Default)]
pub struct Targets {
    /// Those that it changes.
    pub wanted: Vec<Target>,
    /// How many are so already.
    pub done: usize,
    /// The keys of those that are not there any more.
    pub gone: Vec<String>,
}

impl Targets {
    fn add(&mut self, asked: &Asked<'_>, row: &Value) {
        let key = key_of(asked.resource, row);
        if asked.act.is_done(row, asked.group) {
            self.done += 1;
            return;
        }
        let title = Some(title_of(asked.resource, row)).filter(|title| !title.is_empty());
        let token = row["concurrencyToken"].as_str().unwrap_or_default().to_owned();
        self.wanted.push(Target { title: title.unwrap_or_else(|| key.clone()), key, token });
    }
}

/// Reads the rows that the form asks for.
///
/// # Errors
/// There are none, or too many; the operations' own.
pub async fn read(visit: &Visit<'_>, asked: &Asked<'_>) -> Result<Targets, Problem> {
    if one(&visit.form, "all") == Some("true") {
        return matching(visit, asked).await;
    }
    let keys = chosen(visit);
    if keys.is_empty() || keys.len() > asked.most() {
        return Err(too_many(visit, asked));
    }
    these(visit, asked, &keys).await
}

/// The keys that the form names: one a field, or one a line; each once.
pub fn chosen<'a>(visit: &'a Visit<'_>) -> Vec<&'a str> {
    let each = visit.form.iter().filter(|(name, _)| name == "selected").map(|(_, key)| key.as_str());
    let lines = lines(visit).map(|(key, _)| key);
    let mut seen = HashSet::new();
    each.chain(lines).map(str::trim).filter(|key| !key.is_empty() && seen.insert(*key)).collect()
}

/// The lines of keys, each with what stands after its tab.
fn lines<'a>(visit: &'a Visit<'_>) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
    let lines = one(&visit.form, "ids").unwrap_or_default().lines();
    lines.map(|line| line.split_once('\t').map_or((line, None), |(key, token)| (key, Some(token))))
}

/// Rows as [`chosen`] reads them again, with their tokens.
pub fn written(wanted: &[Target]) -> String {
    let lines: Vec<String> = wanted.iter().map(|one| format!("{}\t{}", one.key, one.token)).collect();
    lines.join("\n")
}

/// The rows as they were when the form was shown, where it tells.
pub fn seen(visit: &Visit<'_>, resource: &'static Resource) -> Option<Unchanged> {
    let line = |(key, token): (&str, Option<&str>)| {
        Some((key.to_owned(), token.filter(|token| !token.is_empty())?.to_owned()))
    };
    // places are those of all rows: a form that tells some tokens alone tells none
    let tokens = lines(visit).map(line).collect::<Option<Vec<_>>>()?;
    Some(Unchanged { shape: resource.shape, tokens })
}

fn too_many(visit: &Visit<'_>, asked: &Asked<'_>) -> Problem {
    Problem::invalid(visit.words.page("many_bound").replace("{n}", &asked.most().to_string()))
}

/// The rows with these keys, in their order.
async fn these(visit: &Visit<'_>, asked: &Asked<'_>, keys: &[&str]) -> Result<Targets, Problem> {
    let found = rows_of(visit, asked.resource, keys, asked.reading()).await?;
    let mut targets = Targets::default();
    for key in keys {
        match found.get(*key) {
            Some(row) => targets.add(asked, row),
            None => targets.gone.push((*key).to_owned()),
        }
    }
    Ok(targets)
}

impl Asked<'_> {
    /// How the rows of the act are read.
    pub fn reading(&self) -> Reading {
        Reading { is_whole: self.act.wants_group(), is_of_deleted: self.act == Act::Restore }
    }
}

/// Rows by their keys.
///
/// # Errors
/// The operations' own.
pub async fn rows_of(
    visit: &Visit<'_>,
    resource: &'static Resource,
    keys: &[&str],
    reading: Reading,
) -> Result<HashMap<String, Value>, Problem> {
    let op = visit.need(resource.list)?;
    let field = resource.key().ok_or_else(nothing_here)?;
    let rows = rows_by(visit, (op, field.wire()), keys, reading).await?;
    Ok(rows.into_iter().map(|row| (key_of(resource, &row), row)).collect())
}

/// All rows that match what the list showed.
async fn matching(visit: &Visit<'_>, asked: &Asked<'_>) -> Result<Targets, Problem> {
    let shown: Parameters =
        kept(&visit.form).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut targets = Targets::default();
    if let Some(input) = searching(visit, asked.resource, &shown) {
        let rows = visit.perform(input).await?.json();
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        // a search that tells as many as it can may have left out some
        if rows.len() < MOST_FOUND {
            for row in rows {
                targets.add(asked, row);
            }
            return Ok(targets);
        }
    }
    let op = visit.need(asked.resource.list)?;
    let reading = asked.reading();
    let piece = if asked.resource.shape.reads.large && reading.is_whole { PIECE_OF_LARGE } else { MAX_COUNT };
    let (mut cursor, mut seen) = (None, 0);
    loop {
        let mut input = reading.input(op, piece);
        input.query.extend(filter(asked.resource, &shown).map(|filter| ("filter".to_owned(), filter)));
        input.query.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
        let output = visit.perform(input).await?;
        let rows = output.json();
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        seen += rows.len();
        if seen > asked.most() {
            return Err(too_many(visit, asked));
        }
        for row in rows {
            targets.add(asked, row);
        }
        cursor = output.header("link").and_then(cursor_of);
        if cursor.is_none() {
            return Ok(targets);
        }
    }
}
