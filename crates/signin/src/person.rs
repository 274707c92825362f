//! The person who signs in: the platform user behind a user of a store, and whether that person is admitted.

use chancery_flow::NotAdmitted;
use chancery_record::Value;
use chancery_resource::{Context, Problem, StoreError, Tx};
use chancery_userstore::synchronize::USERS;
use uuid::Uuid;

use crate::application::{Application, OfferedStore};

/// The platform user who has an Active identity for this user of a store. One is created where there is none yet
/// and the store lets it.
///
/// # Errors
/// Those of the store.
pub fn of_store_user(
    context: &mut Context,
    tx: &mut Tx<'_>,
    store: &OfferedStore,
    user: Uuid,
) -> Result<Option<Uuid>, Problem> {
    match find(tx, store.id, user)? {
        Identity::Counts(person) => Ok(Some(person)),
        Identity::None if store.creates_platform_users => USERS.follow(context, tx, store.subscription, user),
        Identity::None | Identity::Over => Ok(None),
    }
}

/// The identity of a store's user on the platform.
enum Identity {
    /// There is none yet.
    None,
    /// It is Active, and this platform user, who is not hidden, has it.
    Counts(Uuid),
    /// It is not Active, or its owner is hidden.
    Over,
}

fn find(tx: &mut Tx<'_>, instance: Uuid, user: Uuid) -> Result<Identity, StoreError> {
    let text = "SELECT u.id, i.lifecycle_status, u.hidden_on FROM application_identity i \
        JOIN application_user u ON u.rid = i.application_user_rid WHERE i.idp_instance_id = ?1 AND i.subject = ?2";
    let found = tx.one(text, &[Value::Id(instance), user.to_string().into()], |row| {
        let counts = row.text(1)? == "Active" && row.is_null(2)?;
        Ok(if counts { Identity::Counts(row.id(0)?) } else { Identity::Over })
    });
    Ok(found?.unwrap_or(Identity::None))
}

/// Why a person is not admitted to a client app; `None`: the person is. A temporary lock ends nothing: else strangers
/// could sign people out by wrong passwords. It keeps out who proves a password, which its own check sees.
///
/// # Errors
/// Those of the store.
pub fn refusal(
    tx: &mut Tx<'_>,
    application: &Application,
    person: Uuid,
    instance: Uuid,
    now: chancery_record::Timestamp,
) -> Result<Option<NotAdmitted>, StoreError> {
    let text = "SELECT u.subscription_id, i.subject, s.is_user_active, s.is_user_locked, \
        s.user_valid_from, s.user_valid_to, EXISTS (SELECT 1 FROM client_app_authorized_user z \
        WHERE z.client_app_rid = ?3 AND z.application_user_rid = u.rid) FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.idp_instance_id = ?2 \
        AND i.lifecycle_status = 'Active' JOIN idp_instance o ON o.id = i.idp_instance_id \
        LEFT JOIN user_account s ON s.store = o.rid AND s.quarantined_on IS NULL AND s.id = ?4 \
        WHERE u.id = ?1 AND u.hidden_on IS NULL";
    let subject = subject_of(tx, person, instance)?;
    let Some(subject) = subject else { return Ok(Some(NotAdmitted::NoIdentity)) };
    let key = [person.into(), instance.into(), application.rid.into(), subject.into()];
    let found = tx.one(text, &key, |row| {
        let time = |column| if row.is_null(column)? { Ok(None) } else { row.int(column).map(Some) };
        let is_there = !row.is_null(2)?;
        let may = is_there
            && row.bool(2)?
            && !row.bool(3)?
            && time(4)?.is_none_or(|from| from <= now.0)
            && time(5)?.is_none_or(|to| now.0 < to);
        let is_near = application.allow_cross_subscription || row.id(0)? == application.subscription;
        Ok(match (may, is_near, !application.is_restricted || row.bool(6)?) {
            (false, ..) => Some(NotAdmitted::Account),
            (_, false, _) => Some(NotAdmitted::OtherSubscription),
            (.., false) => Some(NotAdmitted::Restricted),
            _ => None,
        })
    })?;
    Ok(found.unwrap_or(Some(NotAdmitted::NoIdentity)))
}

/// The user's id in the store that this person is at this instance.
pub fn subject_of(tx: &mut Tx<'_>, person: Uuid, instance: Uuid) -> Result<Option<Uuid>, StoreError> {
    let text = "SELECT i.subject FROM application_user u JOIN application_identity i \
        ON i.application_user_rid = u.rid WHERE u.id = ?1 AND i.idp_instance_id = ?2 \
        AND i.lifecycle_status = 'Active'";
    let found =
        tx.one(text, &[person.into(), instance.into()], |row| Ok(Uuid::try_parse(row.text(0)?).ok()))?;
    Ok(found.flatten())
}
