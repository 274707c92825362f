//! The rows of a batch action: the selected ones, or all that match the filter of the list.

use std::collections::{HashMap, HashSet};

use chancery_resource::{MAX_COUNT, Problem, Unchanged};
use serde_json::Value;

use super::{Act, BatchRequest, list_parameters};
use crate::{
    pages::{
        batch_lookup::{ReadOptions, rows_by},
        list::{MAX_FOUND, cursor_of, filter, search_input},
    },
    shell::{
        directory::{Resource, key_of, title_of},
        visit::{Parameters, Visit, not_found, one},
    },
};

/// Page size for rows with large relations.
const LARGE_PAGE_SIZE: usize = 50;

/// A row of an action.
pub struct Target {
    /// Its key.
    pub key: String,
    /// Its display name.
    pub title: String,
    /// Its concurrency token, if it has one.
    pub token: String,
}

/// The rows of an action.
#[derive(Default)]
pub struct Targets {
    /// Those that the action changes.
    pub pending: Vec<Target>,
    /// The number of those that already have the requested state.
    pub done: usize,
    /// The keys of those that no longer exist.
    pub gone: Vec<String>,
}

impl Targets {
    fn add(&mut self, request: &BatchRequest<'_>, row: &Value) {
        let key = key_of(request.resource, row);
        if request.act.is_done(row, request.group) {
            self.done += 1;
            return;
        }
        let title = Some(title_of(request.resource, row)).filter(|title| !title.is_empty());
        let token = row["concurrencyToken"].as_str().unwrap_or_default().to_owned();
        self.pending.push(Target { title: title.unwrap_or_else(|| key.clone()), key, token });
    }
}

/// Reads the rows of the form.
///
/// # Errors
/// There are none, or too many.
pub async fn read(visit: &Visit<'_>, request: &BatchRequest<'_>) -> Result<Targets, Problem> {
    if one(&visit.form, "all") == Some("true") {
        return matching(visit, request).await;
    }
    let keys = chosen(visit);
    if keys.is_empty() || keys.len() > request.most() {
        return Err(too_many(visit, request));
    }
    by_keys(visit, request, &keys).await
}

/// The keys of the form: one a field, or one a line; each once.
pub fn chosen<'a>(visit: &'a Visit<'_>) -> Vec<&'a str> {
    let each = visit.form.iter().filter(|(name, _)| name == "selected").map(|(_, key)| key.as_str());
    let lines = lines(visit).map(|(key, _)| key);
    let mut seen = HashSet::new();
    each.chain(lines).map(str::trim).filter(|key| !key.is_empty() && seen.insert(*key)).collect()
}

/// The lines of keys, each with the token after its tab.
fn lines<'a>(visit: &'a Visit<'_>) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
    let lines = one(&visit.form, "ids").unwrap_or_default().lines();
    lines.map(|line| line.split_once('\t').map_or((line, None), |(key, token)| (key, Some(token))))
}

/// Rows with their tokens, in the format that [`chosen`] reads.
pub fn keys_with_tokens(targets: &[Target]) -> String {
    let lines: Vec<String> = targets.iter().map(|one| format!("{}\t{}", one.key, one.token)).collect();
    lines.join("\n")
}

/// The versions of the rows when the form was rendered, if it contains all of them.
pub fn expected_versions(visit: &Visit<'_>, resource: &'static Resource) -> Option<Unchanged> {
    let line = |(key, token): (&str, Option<&str>)| {
        Some((key.to_owned(), token.filter(|token| !token.is_empty())?.to_owned()))
    };
    // positions refer to all rows: a form with only some tokens counts as one without tokens
    let tokens = lines(visit).map(line).collect::<Option<Vec<_>>>()?;
    Some(Unchanged { shape: resource.shape, tokens })
}

fn too_many(visit: &Visit<'_>, request: &BatchRequest<'_>) -> Problem {
    Problem::invalid(visit.words.page("many_bound").replace("{n}", &request.most().to_string()))
}

/// The rows with these keys, in their order.
async fn by_keys(visit: &Visit<'_>, request: &BatchRequest<'_>, keys: &[&str]) -> Result<Targets, Problem> {
    let rows = rows_of(visit, request.resource, keys, request.reading()).await?;
    let mut targets = Targets::default();
    for key in keys {
        match rows.get(*key) {
            Some(row) => targets.add(request, row),
            None => targets.gone.push((*key).to_owned()),
        }
    }
    Ok(targets)
}

impl BatchRequest<'_> {
    /// How the rows of the action are read.
    pub fn reading(&self) -> ReadOptions {
        ReadOptions { is_whole: self.act.wants_group(), is_of_deleted: self.act == Act::Restore }
    }
}

/// Rows by their keys.
pub async fn rows_of(
    visit: &Visit<'_>,
    resource: &'static Resource,
    keys: &[&str],
    reading: ReadOptions,
) -> Result<HashMap<String, Value>, Problem> {
    let op = visit.require(resource.list)?;
    let field = resource.key().ok_or_else(not_found)?;
    let rows = rows_by(visit, op, field.wire(), keys, reading).await?;
    Ok(rows.into_iter().map(|row| (key_of(resource, &row), row)).collect())
}

/// All rows that match the filter of the list.
async fn matching(visit: &Visit<'_>, request: &BatchRequest<'_>) -> Result<Targets, Problem> {
    let shown: Parameters =
        list_parameters(&visit.form).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut targets = Targets::default();
    if let Some(input) = search_input(visit, request.resource, &shown) {
        let rows = visit.perform(input).await?.json();
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        // a search with the maximum number of results may have omitted some
        if rows.len() < MAX_FOUND {
            for row in rows {
                targets.add(request, row);
            }
            return Ok(targets);
        }
    }
    let op = visit.require(request.resource.list)?;
    let reading = request.reading();
    let page_size =
        if request.resource.shape.reads.large && reading.is_whole { LARGE_PAGE_SIZE } else { MAX_COUNT };
    let (mut cursor, mut seen) = (None, 0);
    loop {
        let mut input = reading.input(op, page_size);
        input.query.extend(filter(request.resource, &shown).map(|filter| ("filter".to_owned(), filter)));
        input.query.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
        let output = visit.perform(input).await?;
        let rows = output.json();
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        seen += rows.len();
        if seen > request.most() {
            return Err(too_many(visit, request));
        }
        for row in rows {
            targets.add(request, row);
        }
        cursor = output.header("link").and_then(cursor_of);
        if cursor.is_none() {
            return Ok(targets);
        }
    }
}
