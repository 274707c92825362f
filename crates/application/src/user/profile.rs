//! Entries of platform users of external providers, by key: their questionnaire answers.
//! Administrators correct and delete them.

use chancery_record::{EntryValue, KEY, Key, OPEN, OWNER, Record as _, SHOWN, Token, Value, record};
use chancery_resource::{
    Context, Pairs, Problem, Reach, Relation, Shape, StoreError, Tx, Unique, insert, load, load_keys,
    new_row, update,
};
use uuid::Uuid;

use super::{APPLICATION_USER, ApplicationUserId};

record! {
    /// A key and value entry of a platform user who does not belong to a user store.
    #[de("Antwort eines Plattformbenutzers", "Antworten von Plattformbenutzern")]
    pub struct ApplicationUserProfile {
        /// The platform user.
        #[de("Plattformbenutzer")]
        application_user_id: ApplicationUserId = OWNER,
        /// Key of the entry, unique for the platform user and case-sensitive.
        #[de(_, "Der Schlüssel des Eintrags, eindeutig für den Plattformbenutzer. Groß- und Kleinschreibung wird unterschieden.")]
        key: Key = KEY,
        /// Its value.
        value: Option<EntryValue> = OPEN,
        /// Concurrency token. It changes with every write to the entry.
        concurrency_token: Token = SHOWN,
    }
}

/// The entries of platform users.
pub static APPLICATION_USER_PROFILE: Shape =
    Shape::of::<ApplicationUserProfile>("ApplicationUserProfile", "platform_profile", Reach::All)
        .owned(&APPLICATION_USER, "application_user_rid")
        .open()
        .unique(&[Unique::new(
            "platform_profile__application_user_rid__key",
            &[ApplicationUserProfile::KEY.field()],
        )]);

/// The relation from a platform user to the entries.
pub const fn entries() -> Relation {
    Relation::new(
        "userProfiles",
        "The person's answers to questionnaires at sign-in, by key. The answers of users of a user store are stored in that store.",
        Pairs { table: "platform_profile", own: "application_user_rid", other: "rid" },
        &APPLICATION_USER_PROFILE,
    )
    .showing(const { &[ApplicationUserProfile::KEY.field(), ApplicationUserProfile::VALUE.field()] })
}

/// Adds entries to a platform user, and updates existing ones.
///
/// # Errors
/// A key or value that is not valid for an entry.
pub fn add_entries(
    context: &Context,
    tx: &mut Tx<'_>,
    person: Uuid,
    entries: &[(String, String)],
) -> Result<(), Problem> {
    let owner = load(context, tx, &APPLICATION_USER, None, person.into())?.as_owner(&APPLICATION_USER)?;
    let keys: Vec<Value> = entries.iter().map(|(key, _)| key.as_str().into()).collect();
    let known = load_keys(context, tx, &APPLICATION_USER_PROFILE, Some(&owner), &keys)?;
    for (key, value) in entries {
        let value = Some(EntryValue::new(value.clone()).map_err(StoreError::Internal)?);
        let concurrency_token = chancery_record::FieldType::from_value(context.new_token())?;
        if let Some(was) = known.get(key) {
            let mut values = was.values.clone();
            ApplicationUserProfile::VALUE.set(&mut values, value)?;
            ApplicationUserProfile::CONCURRENCY_TOKEN.set(&mut values, concurrency_token)?;
            update(context, tx, &APPLICATION_USER_PROFILE, was, &values)?;
            continue;
        }
        let entry = ApplicationUserProfile {
            application_user_id: ApplicationUserId(owner.id),
            key: Key::new(key.clone()).map_err(StoreError::Internal)?,
            value,
            concurrency_token,
        };
        let values = new_row(context, &APPLICATION_USER_PROFILE, Some(&owner), entry.into_values())?;
        insert(context, tx, &APPLICATION_USER_PROFILE, Some(&owner), &values)?;
    }
    Ok(())
}
