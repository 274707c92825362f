//! Restores a user from quarantine without the former credentials: with the former id and name, and nothing else.

use chancery_record::Value;
use chancery_resource::{
    AuditAction, Context, Problem, Shape, StateTable, StoredRow, Tx, delete, event_name, load_statements,
    relink, select_of,
};
use uuid::Uuid;

use crate::{
    passkey::{PASSKEY, revoke_passes},
    security_contact::SECURITY_CONTACT,
    user::{USER, User, UserForUpdate},
    user_image::USER_IMAGE,
    user_profile::USER_PROFILE,
};

/// Restores a user from the quarantine without memberships, password, passkeys, contacts, picture and profile entries: a
/// returning person is onboarded anew.
pub fn restore_without_credentials(
    context: &Context,
    tx: &mut Tx<'_>,
    hidden: StoredRow,
) -> Result<StoredRow, Problem> {
    let owner = hidden.as_owner(&USER)?;
    let deleted_shapes: [&'static Shape; 4] = [&PASSKEY, &SECURITY_CONTACT, &USER_PROFILE, &USER_IMAGE];
    for shape in deleted_shapes {
        for (_, row) in load_statements(context, tx, shape, &[select_of(context, shape, &owner)])? {
            delete(context, tx, shape, &StoredRow { owner: Some(owner.clone()), ..row })?;
        }
    }
    let mut groups: Vec<Uuid> = Vec::new();
    let text =
        "SELECT g.id FROM group_member m JOIN user_group g ON g.rid = m.group_rid WHERE m.user_rid = ?1";
    tx.query(text, &[Value::Int(hidden.rid)], |row| {
        groups.push(row.id(0)?);
        Ok(())
    })?;
    relink(context, tx, &USER, &User::MEMBER_OF_GROUPS, &hidden, &[], &groups)?;
    let passwords = [
        StateTable::UserPassword,
        StateTable::UserPasswordHistory,
        StateTable::RemovedPassword,
        StateTable::PasswordReset,
    ];
    for table in passwords {
        tx.queue(&table.delete("WHERE user_rid = ?1"), vec![Value::Int(hidden.rid)])?;
    }
    let mut loaded = UserForUpdate::new(hidden)?;
    let user = &mut loaded.user;
    (user.quarantined_on, user.is_user_active) = (None, true);
    (user.is_initial_password, user.is_password_change_required, user.password_expiration) =
        (false, false, None);
    user.renew_token(context)?;
    let id = user.id;
    let stored = loaded.save(context, tx, AuditAction::Modified(event_name!("restored")))?;
    revoke_passes(context, tx, id)?;
    Ok(stored)
}
