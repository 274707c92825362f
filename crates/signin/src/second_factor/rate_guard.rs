//! The rate guard of second-factor codes against callers who know the password: only a correct code clears wrong
//! ones, and each lock lasts twice as long as the previous one.

use chancery_record::Timestamp;
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{Context, StateTable, StoreError, Tx};
use uuid::Uuid;

use crate::client_app::OfferedStore;

/// The maximum lock, in ms: a day.
const LONGEST_MS: i64 = 24 * 3_600_000;
/// How long wrong codes are remembered, in ms.
const REMEMBERED_MS: i64 = 3 * LONGEST_MS;
/// The first lock of external users, in ms.
const FIRST_LOCK_MS: i64 = 5 * 60_000;
/// How many wrong codes lock if the store has no temporary lock.
const LIMIT: i64 = 5;

/// Whether a person is locked for second-factor codes now.
pub fn is_locked(tx: &mut Tx<'_>, person: Uuid, now: Timestamp) -> Result<bool, StoreError> {
    let text = "SELECT COALESCE(locked_until, 0) FROM attempt_guard WHERE person_id = ?1";
    Ok(tx.one(text, &[person.into()], |row| row.int(0))?.is_some_and(|until| until > now.0))
}

/// Counts a wrong code of a person of this store, or of an external user.
pub fn note_wrong(
    context: &Context,
    tx: &mut Tx<'_>,
    store: Option<&OfferedStore>,
    person: Uuid,
) -> Result<(), StoreError> {
    let text = StateTable::AttemptGuard.insert(
        "(person_id, failed, expires_on) VALUES (?1, 1, ?2) ON CONFLICT (person_id) DO UPDATE SET \
         failed = attempt_guard.failed + 1, expires_on = ?2 RETURNING failed",
    );
    let until = context.now.plus(REMEMBERED_MS).0.into();
    let failed = tx.returning(&text, &[person.into(), until], |row| row.int(0))?.unwrap_or(1);
    let locking = store
        .map(|store| &store.options)
        .filter(|options| options.get(UserStoreOption::TEMPORARY_LOCK_ENABLED));
    let limit = locking.map_or(0, |options| options.get(UserStoreOption::ATTEMPTS_BEFORE_TEMPORARY_LOCK));
    let limit = if limit > 0 { limit } else { LIMIT };
    if failed % limit == 0 {
        let first =
            store.map_or(FIRST_LOCK_MS, |store| store.options.get(UserStoreOption::TEMPORARY_LOCK_DURATION));
        let until = context.now.plus(lock(first, failed / limit));
        let text = StateTable::AttemptGuard.update("SET locked_until = ?2 WHERE person_id = ?1");
        tx.queue(&text, vec![person.into(), until.0.into()])?;
    }
    Ok(())
}

/// The duration of the lock of this number, in ms.
fn lock(first: i64, number: i64) -> i64 {
    let doublings = u32::try_from((number - 1).clamp(0, 30)).unwrap_or(0);
    first.saturating_mul(1_i64 << doublings).min(LONGEST_MS)
}

/// Clears the count of wrong codes after a correct one.
pub fn clear(tx: &mut Tx<'_>, person: Uuid) -> Result<(), StoreError> {
    tx.queue(&StateTable::AttemptGuard.delete("WHERE person_id = ?1"), vec![person.into()])
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_MS, lock};

    #[test]
    fn each_lock_doubles_up_to_a_day() {
        assert_eq!([1, 2, 3].map(|number| lock(300_000, number)), [300_000, 600_000, 1_200_000]);
        assert_eq!(lock(300_000, 20), LONGEST_MS);
        assert_eq!(lock(i64::MAX, i64::MAX), LONGEST_MS);
    }
}
