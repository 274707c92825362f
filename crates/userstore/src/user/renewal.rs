//! A user who comes back from quarantine and starts clean: under the id and the name of before, and with nothing else.

use chancery_record::Value;
use chancery_resource::{
    AuditAction, Context, Problem, Shape, StateTable, StoredRow, Tx, delete, load_found, relink, select_of,
};
use uuid::Uuid;

use super::{USER, User, UserForUpdate};
use crate::{
    passkey::{PASSKEY, revoke_passes},
    security_contact::SECURITY_CONTACT,
    user_image::USER_IMAGE,
    user_profile::USER_PROFILE,
};

/// Takes a user out of the quarantine without memberships, password, passkeys, contacts, picture and profile entries: a
/// person who returns is let in anew.
///
/// # Errors
/// The store's.
pub fn renew(context: &Context, tx: &mut Tx<'_>, hidden: StoredRow) -> Result<StoredRow, Problem> {
    let owner = hidden.as_owner(&USER)?;
    let left_behind: [&'static Shape; 4] = [&PASSKEY, &SECURITY_CONTACT, &USER_PROFILE, &USER_IMAGE];
    for shape in left_behind {
        for (_, row) in load_found(context, tx, shape, &[select_of(context, shape, &owner)])? {
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
    relink(context, tx, (&USER, &User::MEMBER_OF_GROUPS), &hidden, (&[], &groups))?;
    let passwords = [
        StateTable::UserPassword,
        StateTable::UserPasswordHistory,
        StateTable::RemovedPassword,
        StateTable::PasswordReset,
    ];
    for table in passwords {
        tx.queue(&table.delete("WHERE user_rid = ?1"), vec![Value::Int(hidden.rid)])?;
    }
    let mut found = UserForUpdate::new(hidden)?;
    let user = &mut found.user;
    (user.quarantined_on, user.is_user_active) = (None, true);
    (user.is_initial_password, user.is_password_change_required, user.password_expiration) =
        (false, false, None);
    user.renew_token(context)?;
    let id = user.id;
    let stored = found.save(context, tx, AuditAction::As("Modified", "restored"))?;
    revoke_passes(context, tx, id)?;
    Ok(stored)
}
