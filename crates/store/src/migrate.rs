//! The schema's migrations, forward only. One text serves both engines; placeholders stand for types.

mod steps;

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};

pub use steps::{Fill, Step, steps};

use crate::{Error, Row};

/// A migration.
#[derive(Debug)]
pub struct Migration {
    pub version: i64,
    /// The path of its text in the sources.
    path: &'static str,
    /// Its text, with placeholders.
    text: &'static str,
}

impl Migration {
    /// Its display name: that of its file.
    pub fn name(&self) -> &'static str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".sql").unwrap_or(name)
    }
}

/// Creates the list from lines with a version and a file.
macro_rules! migrations {
    ($(($version:expr, include_str!($path:literal)),)*) => {
        &[$(Migration { version: $version, path: $path, text: include_str!($path) }),*]
    };
}

/// The migrations in order. Never edit one that a release has shipped; add the next.
pub const MIGRATIONS: &[Migration] = migrations![
    (1, include_str!("../../../migrations/0001_foundation.sql")),
    (2, include_str!("../../../migrations/0002_customer.sql")),
    (3, include_str!("../../../migrations/0003_tenancy.sql")),
    (4, include_str!("../../../migrations/0004_user_store.sql")),
    (5, include_str!("../../../migrations/0005_options.sql")),
    (6, include_str!("../../../migrations/0006_credential.sql")),
    (7, include_str!("../../../migrations/0007_mail.sql")),
    (8, include_str!("../../../migrations/0008_audit_tree.sql")),
    (9, include_str!("../../../migrations/0009_application.sql")),
    (10, include_str!("../../../migrations/0010_image_and_passkey.sql")),
    (11, include_str!("../../../migrations/0011_management.sql")),
    (12, include_str!("../../../migrations/0012_token.sql")),
    (13, include_str!("../../../migrations/0013_identity_replacement.sql")),
    (14, include_str!("../../../migrations/0014_passkey_trust.sql")),
    (15, include_str!("../../../migrations/0015_resource_key.sql")),
    (16, include_str!("../../../migrations/0016_audit_key.sql")),
    (17, include_str!("../../../migrations/0017_client_app_level.sql")),
    (18, include_str!("../../../migrations/0018_option_of_mfa_instance.sql")),
    (19, include_str!("../../../migrations/0019_write_gate.sql")),
    (20, include_str!("../../../migrations/0020_job_lease.sql")),
    (21, include_str!("../../../migrations/0021_resource_owner.sql")),
    (22, include_str!("../../../migrations/0022_client_app_controller.sql")),
    (23, include_str!("../../../migrations/0023_last_entry.sql")),
    (25, include_str!("../../../migrations/0025_value_or_null.sql")),
    (26, include_str!("../../../migrations/0026_attempt_at_nobody.sql")),
    (27, include_str!("../../../migrations/0027_idempotency_and_trail.sql")),
    (29, include_str!("../../../migrations/0029_process_address.sql")),
    (30, include_str!("../../../migrations/0030_controller_and_form.sql")),
    (CHECKSUMS, include_str!("../../../migrations/0031_migration_checksum.sql")),
    (32, include_str!("../../../migrations/0032_sign_in.sql")),
    (33, include_str!("../../../migrations/0033_sign_in_grant.sql")),
    (34, include_str!("../../../migrations/0034_device_authorization.sql")),
    (35, include_str!("../../../migrations/0035_second_factor.sql")),
    (36, include_str!("../../../migrations/0036_password_reset_mail.sql")),
    (37, include_str!("../../../migrations/0037_sign_in_under_way.sql")),
    (38, include_str!("../../../migrations/0038_room_beside_grants.sql")),
    (39, include_str!("../../../migrations/0039_console.sql")),
    (40, include_str!("../../../migrations/0040_user_by_name.sql")),
    (43, include_str!("../../../migrations/0043_event.sql")),
    (44, include_str!("../../../migrations/0044_event_subscription.sql")),
    (45, include_str!("../../../migrations/0045_console_oneself.sql")),
    (46, include_str!("../../../migrations/0046_client_credential_use.sql")),
    (47, include_str!("../../../migrations/0047_removed_password.sql")),
    (48, include_str!("../../../migrations/0048_scim.sql")),
    (49, include_str!("../../../migrations/0049_user_state.sql")),
    (50, include_str!("../../../migrations/0050_user_locked_until.sql")),
    (FLOORS, include_str!("../../../migrations/0051_schema_floor.sql")),
    (53, include_str!("../../../migrations/0053_platform_consent.sql")),
    (54, include_str!("../../../migrations/0054_planted_credentials.sql")),
    (55, include_str!("../../../migrations/0055_resource_spelling.sql")),
    (56, include_str!("../../../migrations/0056_idempotent_refusal.sql")),
    (59, include_str!("../../../migrations/0059_installation.sql")),
    (KEY_ROOT, include_str!("../../../migrations/0061_key_root.sql")),
    (63, include_str!("../../../migrations/0063_set_by_other.sql")),
    (64, include_str!("../../../migrations/0064_sign_in_of_apps.sql")),
    (67, include_str!("../../../migrations/0067_refresh_tokens.sql")),
    (68, include_str!("../../../migrations/0068_refused_requests.sql")),
    (72, include_str!("../../../migrations/0072_sign_in_elsewhere.sql")),
    (73, include_str!("../../../migrations/0073_questionnaire.sql")),
    (74, include_str!("../../../migrations/0074_callback_path.sql")),
    (75, include_str!("../../../migrations/0075_settings_confirmed.sql")),
    (76, include_str!("../../../migrations/0076_idempotent_erasure.sql")),
];

/// The migration that adds the column of checksums.
const CHECKSUMS: i64 = 31;

/// The migration that adds the floor.
const FLOORS: i64 = 51;

/// The migration that adds the root key, from which other keys are derived. After a rotation of the master key, programs must know it.
pub const KEY_ROOT: i64 = 61;

/// The floor to which this release raises the schema: the version that programs must know to run beside it, or
/// after it. It is at most the schema version of the previous release, so that a downgrade to that is possible.
pub const FLOOR: i64 = FLOORS;

/// The placeholders of the migration texts, with their text on SQLite and on PostgreSQL.
const PLACEHOLDERS: &[(&str, &str, &str)] = &[
    ("{row}", "INTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
    ("{counted}", "INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
    ("{id}", "BLOB", "UUID"),
    ("{text}", "TEXT", "TEXT COLLATE \"C\""),
    ("{bytes}", "BLOB", "BYTEA"),
    ("{int}", "INTEGER", "BIGINT"),
    ("{time}", "INTEGER", "BIGINT"),
    ("{bool}", "BOOLEAN", "BOOLEAN"),
    ("{clustered}", "WITHOUT ROWID", ""),
    // begins a line for one engine only
    ("{on_sqlite}", "", "--"),
    ("{on_postgres}", "--", ""),
];

pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migration (version BIGINT NOT NULL PRIMARY KEY)";

/// The text of a migration for one engine.
pub fn text_for(migration: &Migration, postgres: bool) -> String {
    PLACEHOLDERS.iter().fold(migration.text.to_owned(), |text, (word, sqlite, other)| {
        text.replace(word, if postgres { other } else { sqlite })
    })
}

/// Records that a migration was applied.
pub fn record(version: i64) -> String {
    format!("INSERT INTO schema_migration (version) VALUES ({version});")
}

/// The schema information of a database.
#[derive(Clone, Debug, Default)]
pub struct AppliedSchema {
    /// The applied migrations: versions, and the checksum of each that has one.
    pub migrations: BTreeMap<i64, Option<String>>,
    /// The oldest supported program, by the newest version that it knows.
    pub floor: i64,
}

/// A migration's checksum: SHA-256 of its text, the same for both engines, as hex.
fn checksum(migration: &str) -> String {
    digest(&SHA256, migration.as_bytes()).as_ref().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// This program's migrations, each with its checksum.
pub fn checksums() -> impl Iterator<Item = (i64, String)> {
    MIGRATIONS.iter().map(|migration| (migration.version, checksum(migration.text)))
}

/// Reads the schema information of a database. `query` runs a statement and passes on its rows.
pub fn read_applied(
    mut query: impl FnMut(&str, &mut dyn FnMut(&Row<'_>) -> Result<(), Error>) -> Result<(), Error>,
) -> Result<AppliedSchema, Error> {
    let mut applied = AppliedSchema::default();
    query("SELECT version FROM schema_migration", &mut |row| {
        applied.migrations.insert(row.int(0)?, None);
        Ok(())
    })?;
    if applied.migrations.contains_key(&CHECKSUMS) {
        let text = "SELECT version, checksum FROM schema_migration WHERE checksum IS NOT NULL";
        query(text, &mut |row| {
            applied.migrations.insert(row.int(0)?, Some(row.text(1)?.to_owned()));
            Ok(())
        })?;
    }
    if applied.migrations.contains_key(&FLOORS) {
        query(READ_FLOOR, &mut |row| {
            applied.floor = row.int(0)?;
            Ok(())
        })?;
    }
    Ok(applied)
}

/// Finds a key encrypted by a master key: the first start creates some.
pub const ANY_SEALED_KEY: &str = "SELECT 1 FROM signing_key LIMIT 1";

/// Reads the floor.
pub const READ_FLOOR: &str = "SELECT floor FROM schema_floor";

/// The migrations that are missing, in order.
///
/// # Errors
/// The schema does not support this program.
pub fn pending(applied: &AppliedSchema) -> Result<Vec<&'static Migration>, Error> {
    check_known(applied)?;
    let is_missing = |migration: &&Migration| !applied.migrations.contains_key(&migration.version);
    Ok(MIGRATIONS.iter().filter(is_missing).collect())
}

/// Logs that a migration was applied.
pub fn report(migration: &Migration, took: Duration) {
    tracing::info!(migration = migration.name(), seconds = took.as_secs_f64(), "applied a migration");
}

/// Records the checksum of each applied migration that has none; empty where all have one.
pub fn record_checksums(applied: &AppliedSchema) -> String {
    let has_no_checksum = |version: &i64| applied.migrations.get(version).is_some_and(Option::is_none);
    let updates = checksums().filter(|(version, _)| has_no_checksum(version)).map(|(version, checksum)| {
        format!("UPDATE schema_migration SET checksum = '{checksum}' WHERE version = {version};")
    });
    updates.collect()
}

/// Whether the schema is up to date.
///
/// # Errors
/// The schema does not support this program.
pub fn is_current(applied: &AppliedSchema) -> Result<bool, Error> {
    Ok(pending(applied)?.is_empty() && record_checksums(applied).is_empty())
}

/// The schema version that this program creates.
pub fn schema_version() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// The reason why a program does not support a schema whose floor is above its version.
pub fn refusal_below(floor: i64) -> Option<String> {
    let known = schema_version();
    (floor > known).then(|| {
        format!(
            "its schema serves programs that know version {floor}, and this program knows up to {known}: use the release \
             that it was upgraded to, or a newer one"
        )
    })
}

/// Refuses a schema whose floor is above this program, or a migration with another checksum: that may have
/// created anything. A newer schema is supported as long as its floor allows it.
pub fn check_known(applied: &AppliedSchema) -> Result<(), Error> {
    if let Some(why) = refusal_below(applied.floor) {
        return Err(Error::Unavailable(why));
    }
    for (version, ours) in checksums() {
        if let Some(Some(theirs)) = applied.migrations.get(&version)
            && *theirs != ours
        {
            return Err(Error::Unavailable(format!(
                "its migration {version} was made by another text than this program has (checksum {theirs} there, \
                 {ours} here): use the program that made it, or a release that was not changed after it was \
                 published; nothing was changed"
            )));
        }
    }
    Ok(())
}

/// Checks that no migration is missing and that the schema supports this program.
pub fn check(applied: &AppliedSchema) -> Result<(), Error> {
    let pending = pending(applied)?;
    let Some(first) = pending.first() else { return Ok(()) };
    Err(Error::Unavailable(format!(
        "its schema is older than this program: {} migrations are missing, {} is the first. Run chancery migrate, or start \
         the server without CHANCERY_MIGRATE=off",
        pending.len(),
        first.name()
    )))
}

#[cfg(test)]
mod tests {
    use super::{
        AppliedSchema, CHECKSUMS, FLOOR, MIGRATIONS, check, checksums, is_current, pending, record_checksums,
        schema_version, text_for,
    };

    fn ours() -> AppliedSchema {
        let migrations = checksums().map(|(version, checksum)| (version, Some(checksum))).collect();
        AppliedSchema { migrations, floor: FLOOR }
    }

    /// For a newer schema the floor decides whether it is supported.
    #[test]
    fn a_schema_is_refused_where_its_floor_is_above_this_program() {
        let mut applied = ours();
        assert_eq!(check(&applied), Ok(()));
        applied.migrations.insert(9_999, None);
        assert_eq!(check(&applied), Ok(()));
        applied.floor = schema_version();
        assert_eq!(check(&applied), Ok(()));
        applied.floor = schema_version() + 1;
        assert!(
            check(&applied).unwrap_err().to_string().contains("its schema serves programs that know version")
        );
        let mut applied = ours();
        applied.migrations.pop_first();
        let refused = check(&applied).unwrap_err().to_string();
        assert!(refused.contains("1 migrations are missing, 0001_foundation is the first"), "{refused}");
    }

    #[test]
    fn a_migration_with_another_checksum_is_refused() {
        let mut applied = ours();
        applied.migrations.insert(4, None);
        assert_eq!(check(&applied), Ok(()), "a release before kept no checksum");
        applied.migrations.insert(4, Some("0".repeat(64)));
        assert!(check(&applied).unwrap_err().to_string().contains("migration 4 "));
        assert!(pending(&applied).unwrap_err().to_string().contains("migration 4 "));
    }

    #[test]
    fn missing_migrations_are_pending_and_missing_checksums_are_recorded() {
        assert_eq!(is_current(&ours()), Ok(true));
        assert_eq!(pending(&AppliedSchema::default()).unwrap().len(), MIGRATIONS.len());
        assert_eq!(record_checksums(&AppliedSchema::default()), "");
        let before = MIGRATIONS.iter().filter(|migration| migration.version < CHECKSUMS);
        let migrations = before.map(|migration| (migration.version, None)).collect();
        let applied = AppliedSchema { migrations, floor: 0 };
        let missing = pending(&applied).unwrap();
        assert!(missing.iter().all(|migration| migration.version >= CHECKSUMS));
        assert_eq!(missing.len() + applied.migrations.len(), MIGRATIONS.len());
        assert_eq!(record_checksums(&applied).matches("UPDATE").count(), applied.migrations.len());
    }

    #[test]
    fn every_placeholder_is_known() {
        for migration in MIGRATIONS {
            for postgres in [false, true] {
                let text = text_for(migration, postgres);
                assert!(!text.contains(['{', '}']), "{} has an unknown word", migration.name());
            }
        }
    }

    #[test]
    fn unique_indexes_are_named_after_their_columns() {
        for migration in MIGRATIONS {
            for line in migration.text.lines().filter(|line| line.contains("CREATE UNIQUE INDEX")) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let columns = line.split(['(', ')']).nth(1).unwrap().replace(", ", "__");
                assert_eq!(words[3], format!("{}__{columns}", words[5]), "{}", migration.name());
            }
        }
    }
}
