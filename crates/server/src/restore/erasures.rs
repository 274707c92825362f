//! Repeats the erasures since a backup, from the list outside the database.

use std::{path::Path, sync::Arc};

use chancery_record::{Timestamp, Value, format_timestamp};
use chancery_resource::{AppContext, Context, Problem, Scope, Shape, load, load_hidden, purge, purged};
use chancery_store::{Mode, Store, Tx};
use tokio::sync::mpsc;

use super::{endings::context_of, failed};
use crate::{
    StartError,
    erasure_list::{Erasure, read},
    server_context::server_context,
    services,
    start_error::{BoxError, cause_of},
};

/// People who are erased in one transaction.
const BATCH: usize = 100;

/// Erases the people of the list who exist in the database. Returns a report as text.
///
/// # Errors
/// The list cannot be read.
pub async fn apply(
    store: &Store,
    context: &Arc<AppContext>,
    master: &chancery_resource::MasterKey,
    list: &Path,
) -> Result<String, StartError> {
    let (batches, mut read_batches) = mpsc::channel::<Vec<Erasure>>(1);
    let (path, key) = (list.to_owned(), master.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let mut batch = Vec::new();
        let send = |batch| batches.blocking_send(batch).map_err(|_| BoxError::from("it was given up"));
        read(&path, &key, |erasure| {
            batch.push(erasure);
            if batch.len() < BATCH { Ok(()) } else { send(std::mem::take(&mut batch)) }
        })?;
        send(batch)
    });
    let (mut listed, mut erased, mut newest) = (0, 0, 0);
    while let Some(batch) = read_batches.recv().await {
        listed += batch.len();
        newest = batch.iter().map(|erasure| erasure.number).fold(newest, i64::max);
        let context = Arc::clone(context);
        let erase = store.run("EraseAgain", Mode::Write, None, move |tx| {
            let mut count = 0;
            for erasure in &batch {
                count += usize::from(erase_again(&context, tx, erasure)?);
            }
            Ok::<_, Problem>(count)
        });
        erased += erase.await.map_err(|problem| failed(cause_of(problem)))?;
    }
    reading.await.map_err(failed)?.map_err(failed)?;
    let mut time = Vec::new();
    format_timestamp(Timestamp(newest / 1000), &mut time);
    let dated = if listed == 0 {
        String::new()
    } else {
        format!(", the last on {}", String::from_utf8(time).unwrap_or_default())
    };
    Ok(format!("{listed} erasures are listed{dated}; {erased} people were there again and are erased."))
}

/// Erases a person. Returns false if the person does not exist.
fn erase_again(context: &Arc<AppContext>, tx: &mut Tx<'_>, erasure: &Erasure) -> Result<bool, Problem> {
    let Some(shape) = shape_of(&erasure.resource) else { return Ok(false) };
    let acting = if erasure.store == 0 {
        Some(server_context(context, Scope::Everything))
    } else {
        let text = "SELECT id FROM idp_instance WHERE rid = ?1";
        match tx.one(text, &[Value::Int(erasure.store)], |row| row.id(0))? {
            Some(instance) => context_of(context, tx, instance)?,
            None => None,
        }
    };
    let Some(mut acting) = acting else { return Ok(false) };
    let Some(row) = find(&acting, tx, shape, erasure)? else { return Ok(false) };
    purge(&acting, tx, shape, &row)?;
    purged(&mut acting, tx, shape, std::slice::from_ref(&row))?;
    Ok(true)
}

fn find(
    context: &Context,
    tx: &mut Tx<'_>,
    shape: &Shape,
    erasure: &Erasure,
) -> Result<Option<chancery_resource::StoredRow>, Problem> {
    let key = || Value::Id(erasure.person);
    let row = match load(context, tx, shape, None, key()) {
        // it may be in quarantine
        Err(problem) if problem.status() == 404 => load_hidden(context, tx, shape, key()),
        row => row,
    };
    match row {
        Err(problem) if problem.status() == 404 => Ok(None),
        row => row.map(Some),
    }
}

/// The shape with this name, if its rows are people.
fn shape_of(name: &str) -> Option<&'static Shape> {
    let mut shapes = services().iter().flat_map(|service| service.all()).map(|op| op.shape);
    shapes.find(|shape| shape.name == name)
}
