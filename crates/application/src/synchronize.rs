//! Synchronizes the platform with a user store of any size, in batches of one transaction each.
//! Nothing is stored between runs: the next run sees the changes of an interrupted one.

use chancery_record::{SHOWN, record};
use chancery_resource::{Answer, Call, Problem, StoreError, Tx, answer_form, selectable};
use uuid::Uuid;

use crate::{Mirror, mirror::MirroredStore};

record! {
    /// The result of a synchronization.
    pub struct SynchronizeResult {
        /// Number of users or groups in the store.
        #[de("Bearbeitet")]
        processed: i64 = SHOWN,
        /// Number of users or groups that were new.
        #[de("Angelegt")]
        created: i64 = SHOWN,
        /// Number of users or groups that had changed.
        #[de("Geändert")]
        updated: i64 = SHOWN,
        /// Number of users or groups that were no longer in the store, including those in quarantine.
        #[de("Gelöscht")]
        deleted: i64 = SHOWN,
        /// Number of users or groups with values that the platform does not accept. They are left unchanged and named in the log.
        #[de("Fehlgeschlagen")]
        failed: i64 = SHOWN,
    }
}

/// The progress of a run.
#[derive(Clone)]
struct Progress {
    mirrored_store: MirroredStore,
    total: u64,
    /// The last synchronized id; `None` before the first batch and after the last.
    after: Option<Uuid>,
    is_over: bool,
    result: SynchronizeResult,
}

/// Reconciles the next batch of the mirror of the caller's store; the last time, responds with the result.
pub fn synchronize(call: &mut Call, tx: &mut Tx<'_>, mirror: &Mirror) -> Result<Answer, Problem> {
    let mut progress = match call.result::<Progress>() {
        None => begin(call, tx, mirror)?,
        Some(progress) if progress.is_over => return Ok(answer_form(call, progress.result.clone())),
        Some(progress) => (*progress).clone(),
    };
    let batch = mirror.read(tx, &progress.mirrored_store, progress.after)?;
    let (mirrored_store, result) = (&progress.mirrored_store, &mut progress.result);
    progress.after = call.context.by_itself(|context| {
        context.on_configuration(|context| mirror.reconcile(context, tx, mirrored_store, batch, result))
    })?;
    progress.is_over = progress.after.is_none();
    let (done, total) = (u64::try_from(progress.result.processed).unwrap_or(0), progress.total);
    Ok(Answer::again(progress, done, total))
}

selectable! {
    /// The extent of a run.
    struct Extent(total) {
        subscription: Uuid = "subscription_id",
        /// The number of mirrored users or groups.
        total: i64 = "{total}",
    }
}

fn begin(call: &Call, tx: &mut Tx<'_>, mirror: &Mirror) -> Result<Progress, Problem> {
    let store = call.context.scope.of_store()?;
    let table = mirror.from.table;
    let hidden = mirror.from.deletes.deletion.hiding().map_or_else(String::new, |field| {
        format!(" - (SELECT count(*) FROM {table} WHERE store = ?1 AND {} IS NOT NULL)", field.column)
    });
    let total = format!("(SELECT count(*) FROM {table} WHERE store = ?1){hidden}");
    let text = format!("SELECT {} FROM idp_instance WHERE rid = ?1", Extent::columns(&total));
    let extent = tx.one(&text, &[store.number.into()], Extent::read)?;
    let Extent { subscription, total } =
        extent.ok_or_else(|| StoreError::Internal("a store has no instance".into()))?;
    Ok(Progress {
        mirrored_store: MirroredStore::of(store, subscription),
        total: u64::try_from(total).unwrap_or(0),
        after: None,
        is_over: false,
        result: SynchronizeResult { processed: 0, created: 0, updated: 0, deleted: 0, failed: 0 },
    })
}
