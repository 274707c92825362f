//! Ends tokens, sessions and codes at a restore, because those that were revoked after the backup would be valid again.

use std::sync::Arc;

use chancery_auth::load_store_context;
use chancery_record::{Timestamp, Value};
use chancery_resource::{AppContext, Context, Problem, Scope, load, update};
use chancery_store::{Error, Mode, StateTable, Store, Tx};
use chancery_userstore::{
    passkey::revoke_open_passes,
    scim_token::{SCIM_TOKEN, ScimToken},
};
use uuid::Uuid;

use super::failed;
use crate::{StartError, server_context::server_context, start_error::cause_of};

/// Rows that are ended in one transaction.
const BATCH: u64 = 1000;
/// Passes of a store that are revoked in one transaction.
const PASSES: usize = 512;

/// The tables whose rows are deleted, with their keys: tokens, codes and sessions that are valid as long as their row exists.
const DELETED: [(StateTable, &str); 12] = [
    (StateTable::AuthorizationCode, "digest"),
    (StateTable::ConsoleSession, "digest"),
    (StateTable::ConsoleSetup, "id"),
    (StateTable::DeviceAuthorization, "digest"),
    (StateTable::OneTimeCode, "rid"),
    (StateTable::PasskeyCeremony, "id"),
    (StateTable::PasswordReset, "user_rid"),
    (StateTable::ReferenceToken, "digest"),
    (StateTable::RememberedDevice, "digest"),
    (StateTable::ScimInstanceToken, "idp_instance_id"),
    (StateTable::SecurityContactCode, "contact_rid"),
    (StateTable::SignInFlow, "id"),
];
/// The tables whose rows are marked as ended; they stay visible until they are deleted as usual.
const ENDED: [StateTable; 2] = [StateTable::SignInSession, StateTable::SignInGrant];

/// Ends sessions, grants with their refresh tokens, reference tokens, codes and links, and cancels queued mails that contain codes or
/// links. Idempotent.
pub async fn end_rows(store: &Store, now: Timestamp) -> Result<(), Error> {
    for table in ENDED {
        let text = table.update(format_args!(
            "SET ended_on = ?1 WHERE rid IN (SELECT rid FROM {} WHERE ended_on IS NULL LIMIT {BATCH})",
            table.name()
        ));
        repeat(store, move |tx| tx.execute(&text, &[now.0.into()])).await?;
    }
    for (table, key) in DELETED {
        let text =
            table.delete(format_args!("WHERE {key} IN (SELECT {key} FROM {} LIMIT {BATCH})", table.name()));
        repeat(store, move |tx| tx.execute(&text, &[])).await?;
    }
    repeat(store, move |tx| chancery_mail::take_back(tx, now)).await
}

/// Repeats a statement until it changes less than a full batch of rows.
async fn repeat(
    store: &Store,
    batch: impl FnMut(&mut Tx<'_>) -> Result<u64, Error> + Clone + Send + 'static,
) -> Result<(), Error> {
    loop {
        let mut batch = batch.clone();
        let count: u64 = store.run("EndRows", Mode::Write, None, move |tx| batch(tx)).await?;
        if count < BATCH {
            return Ok(());
        }
    }
}

/// Disables SCIM tokens of user stores and revokes access passes, each with an audit entry. Returns their number as text.
pub async fn end_audited(store: &Store, context: &Arc<AppContext>) -> Result<String, StartError> {
    let read = store.run("FindStores", Mode::Long, None, |tx| {
        let mut stores = Vec::new();
        let text = "SELECT id FROM idp_instance i WHERE EXISTS (SELECT 1 FROM scim_token s WHERE s.store = i.rid) \
            OR EXISTS (SELECT 1 FROM temporary_access_pass p WHERE p.store = i.rid) ORDER BY i.rid";
        tx.query(text, &[], |row| {
            stores.push(row.id(0)?);
            Ok(())
        })?;
        Ok::<_, Error>(stores)
    });
    let (mut tokens, mut passes) = (0, 0);
    for instance in read.await.map_err(failed)? {
        loop {
            let context = Arc::clone(context);
            let end = store.run("EndTokensOfStore", Mode::Write, None, move |tx| {
                let Some(acting) = context_of(&context, tx, instance)? else { return Ok((0, 0)) };
                Ok::<_, Problem>((switch_off_tokens(&acting, tx)?, revoke_open_passes(&acting, tx)?))
            });
            let (off, revoked) = end.await.map_err(|problem| failed(cause_of(problem)))?;
            (tokens, passes) = (tokens + off, passes + revoked);
            if revoked < PASSES {
                break;
            }
        }
    }
    Ok(format!("{tokens} SCIM tokens of user stores and {passes} access passes"))
}

/// The context in which the server acts on a user store.
pub fn context_of(
    context: &Arc<AppContext>,
    tx: &mut Tx<'_>,
    instance: Uuid,
) -> Result<Option<Context>, Problem> {
    let store = load_store_context(tx, &instance.to_string())?;
    Ok(store.map(|store| server_context(context, Scope::Store(store.scope))))
}

fn switch_off_tokens(context: &Context, tx: &mut Tx<'_>) -> Result<usize, Problem> {
    let mut active = Vec::new();
    let text = "SELECT id FROM scim_token WHERE store = ?1 AND is_active = ?2 ORDER BY rid";
    tx.query(text, &[context.scope.store().into(), Value::Bool(true)], |row| {
        active.push(row.id(0)?);
        Ok(())
    })?;
    for token in &active {
        let was = load(context, tx, &SCIM_TOKEN, None, Value::Id(*token))?;
        let mut values = was.values.clone();
        ScimToken::IS_ACTIVE.field().set(&mut values, Value::Bool(false));
        ScimToken::CONCURRENCY_TOKEN.field().set(&mut values, context.new_token());
        update(context, tx, &SCIM_TOKEN, &was, &values)?;
    }
    Ok(active.len())
}
