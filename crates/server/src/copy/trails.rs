//! Verifies the audit trails of a copy, as `chancery audit export` and `verify` do, without a file in between.

use std::io::{BufReader, pipe};

use chancery_ledger::AuditKeys;
use chancery_record::Timestamp;
use chancery_resource::MasterKey;
use chancery_store::{Error, Mode, Store};
use tokio::runtime::Runtime;

use super::say;
use crate::{audit::export, start_error::BoxError, trail_check::trail_keys};

/// Verifies the trail of each user store, and that of the configuration.
pub fn verify(runtime: &Runtime, store: &Store, master: &MasterKey, now: Timestamp) -> Result<(), BoxError> {
    let (keys, names) = find(runtime, store, master)?;
    for name in names {
        let (reader, writer) = pipe()?;
        let (store, master, of) = (store.clone(), master.clone(), name.clone());
        let exporting = runtime.spawn(async move {
            export(&store, &master, &of, now, writer, |_, _| ()).await.map(|(_, done)| done)
        });
        let summary = chancery_ledger::verify(BufReader::new(reader), &keys, None, &mut |finding| {
            say(&format!("audit trail of {name}: {finding}"));
        });
        let exported = runtime.block_on(exporting)?;
        exported.map_err(|error| format!("audit trail of {name}: {error}"))?;
        let summary = summary.map_err(|error| format!("audit trail of {name}: {error}"))?;
        if summary.findings > 0 {
            return Err(format!(
                "the audit trail of {name} is not sound. Verify that of the source: it may have been so before"
            ).into());
        }
        if summary.entries > 0 {
            say(&format!("audit trail of {name}: {} entries, sound", summary.entries));
        } else {
            say(&format!("audit trail of {name}: no checkpoint yet, so nothing to verify"));
        }
    }
    Ok(())
}

/// The keys that signed entries, and the names of the trails.
fn find(runtime: &Runtime, store: &Store, master: &MasterKey) -> Result<(AuditKeys, Vec<String>), BoxError> {
    let master = master.clone();
    let find = store.run("FindTrails", Mode::Long, None, move |tx| {
        let keys = trail_keys(tx, &master)?;
        let mut names = vec!["management".to_owned()];
        tx.query("SELECT id FROM idp_instance WHERE store_name_key IS NOT NULL ORDER BY rid", &[], |row| {
            names.push(row.id(0)?.to_string());
            Ok(())
        })?;
        Ok((keys, names))
    });
    runtime.block_on(find).map_err(|error: Error| error.into())
}
