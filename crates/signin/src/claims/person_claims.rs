//! The facts about a person, as claims of the platform.

use std::collections::HashMap;

use chancery_claims::{Claim, OutClaim, Source, is_protected};
use chancery_oauth::GROUPS;
use chancery_resource::{StoreError, Tx};
use chancery_store::{Row, selectable};
use chancery_userstore::answers;
use uuid::Uuid;

use crate::{
    grant::claim_scope::{EMAIL, PHONE, PROFILE, is_unsafe_link, person_claims, scope_of},
    person::{Admitted, StoreUser, group_names, provisioned_group_names},
};

/// Numbers of audit entries start with their time in microseconds.
const NUMBERS_A_SECOND: i64 = 1_000_000;
/// The maximum of bytes of keys and values of a user's entries that are claims; the first ones by key count.
const MAX_ENTRY_BYTES: usize = 64 << 10;

/// The data to read besides the user.
#[derive(Clone, Copy)]
pub struct ClaimGroups {
    /// The entries of the user (`UserProfile`).
    pub entries: bool,
    /// The names of the groups at any depth.
    pub groups: bool,
}

impl ClaimGroups {
    /// All inputs of rules.
    pub const ALL: Self = Self { entries: true, groups: true };
}

/// The facts about a person.
#[derive(Clone, Debug, Default)]
pub struct PersonClaims {
    /// As claims; groups and entries come last.
    pub claims: Vec<Claim>,
    /// The values of the claims that are entries of the user, by their types.
    pub entries: HashMap<String, String>,
}

impl PersonClaims {
    /// Whether a claim is an entry of the user, as it is stored.
    pub fn has_entry(&self, claim: &OutClaim) -> bool {
        self.entries.get(&claim.claim_type).is_some_and(|value| *value == claim.value)
    }

    fn add(&mut self, claim_type: &str, value: impl Into<String>) {
        self.add_of(Source::Platform, claim_type, value);
    }

    fn add_of(&mut self, source: Source, claim_type: &str, value: impl Into<String>) {
        let (claim_type, value) = (claim_type.to_owned(), value.into());
        // another source may have a usable value
        if !is_unsafe_link(&claim_type, &value) {
            self.claims.push(Claim { claim_type, value, source });
        }
    }

    fn value_of(&self, claim: &str) -> Option<&str> {
        self.claims.iter().find(|one| one.claim_type == claim).map(|one| one.value.as_str())
    }

    /// Adds `name`: the parts of the name, else `otherwise`.
    fn add_name(&mut self, otherwise: Option<String>) {
        let parts = ["given_name", "middle_name", "family_name"].into_iter();
        let joined = parts.filter_map(|claim| self.value_of(claim)).collect::<Vec<_>>().join(" ");
        if let Some(name) = Some(joined).filter(|joined| !joined.is_empty()).or(otherwise) {
            self.add("name", name);
        }
    }

    /// Adds when the person was last changed: the time is part of the number of the audit entry.
    fn add_changed(&mut self, entry: i64) {
        let changed = entry.div_euclid(NUMBERS_A_SECOND);
        if changed > 0 {
            self.add("updated_at", changed.to_string());
        }
    }

    /// Adds the names of groups, sorted, and entries.
    fn add_groups_and_entries(&mut self, mut groups: Vec<String>, entries: Vec<(String, String)>) {
        groups.sort_unstable();
        groups.dedup();
        self.claims.reserve(groups.len() + entries.len());
        for name in groups {
            self.add(GROUPS, name);
        }
        for (key, value) in &entries {
            self.add(key, value.as_str());
        }
        self.entries.extend(entries);
    }

    /// Adds the claims of an external user.
    fn add_external(&mut self, user: &ExternalUser<'_>) {
        let claims = [
            ("given_name", user.first_name),
            ("family_name", user.last_name),
            ("picture", user.picture),
            ("organizational_unit", user.organizational_unit),
        ];
        for (claim, value) in claims {
            if let Some(value) = value {
                self.add(claim, value);
            }
        }
        if let Some(manager) = user.manager {
            self.add("manager", manager.to_string());
        }
    }

    /// Adds a claim if its column is set. Returns whether it is.
    fn add_column(&mut self, claim: &str, row: &Row<'_>, column: usize) -> Result<bool, StoreError> {
        if row.is_null(column)? {
            return Ok(false);
        }
        self.add(claim, row.text(column)?);
        Ok(true)
    }

    /// Adds the claims of a user. `name` falls back to the login name.
    fn add_user(&mut self, row: &Row<'_>) -> Result<(), StoreError> {
        for (column, (claim, _)) in PROFILE.iter().enumerate() {
            self.add_column(claim, row, column)?;
        }
        let login_name = self.value_of("preferred_username").map(str::to_owned);
        self.add_name(login_name);
        let (email, phone) = (PROFILE.len(), PROFILE.len() + 1);
        self.add_changed(row.int(phone + 3)?);
        if self.add_column(EMAIL.0, row, email)? {
            self.add("email_verified", row.bool(phone + 1)?.to_string());
        }
        if self.add_column(PHONE.0, row, phone)? {
            self.add("phone_number_verified", row.bool(phone + 2)?.to_string());
        }
        Ok(())
    }
}

selectable! {
    /// An entry of a user: the first 500.
    struct Entry<'r> from "FROM user_profile WHERE user_rid = ?1 ORDER BY key LIMIT 500" {
        key: &'r str = "key",
        value: Option<&'r str> = "value",
    }
}

selectable! {
    /// The stored fields of an external user.
    struct ExternalUser<'r> from "FROM application_user WHERE rid = ?1" {
        first_name: Option<&'r str> = "first_name",
        last_name: Option<&'r str> = "last_name",
        picture: Option<&'r str> = "picture",
        organizational_unit: Option<&'r str> = "organizational_unit",
        manager: Option<Uuid> = "manager_id",
        email: Option<&'r str> = "email_address",
        last_entry: i64 = "last_entry",
    }
}

/// Claims of external users that only a directory or a provider sets, never an answer.
const OF_DIRECTORIES: [&str; 2] = ["organizational_unit", "manager"];

selectable! {
    /// An answer of an external user.
    struct Answer<'r> from "FROM platform_profile WHERE application_user_rid = ?1 ORDER BY key LIMIT 500" {
        key: &'r str = "key",
        value: Option<&'r str> = "value",
    }
}

/// Types and values of an external identity provider's claims about a person.
pub type ProviderClaims = [(String, String)];

/// Reads the facts about a person, with a provider's claims; `None` if the person no longer exists.
pub fn read(
    tx: &mut Tx<'_>,
    person: &Admitted,
    include: ClaimGroups,
    provider_claims: &ProviderClaims,
) -> Result<Option<PersonClaims>, StoreError> {
    let facts = match &person.user {
        Some(user) => read_user(tx, user, include)?,
        None => read_person(tx, person, include, provider_claims)?,
    };
    // a person who signed in by a user store has no provider's claims, whatever the session holds
    let provider_claims = if person.user.is_some() { &[] } else { provider_claims };
    Ok(facts.map(|mut facts| {
        for (claim_type, value) in provider_claims {
            facts.add_of(Source::IdentityProvider, claim_type, value);
        }
        facts
    }))
}

/// The entries of a person: the first ones, up to [`MAX_ENTRY_BYTES`].
#[derive(Default)]
struct Entries {
    all: Vec<(String, String)>,
    bytes: usize,
}

impl Entries {
    fn take(&mut self, key: &str, value: &str) {
        self.bytes += key.len() + value.len();
        if self.bytes <= MAX_ENTRY_BYTES {
            self.all.push((key.to_owned(), value.to_owned()));
        }
    }
}

/// The claim of this field of users, except for addresses: a typed address does not prove who reads there.
fn claim_of_answer(key: &str) -> Option<&'static str> {
    let field = answers::field_of(key).filter(|_| !answers::is_contact(key))?;
    person_claims().find(|(_, column)| *column == field.column).map(|(claim, _)| claim)
}

/// Reads the facts about an external user, in one exchange.
fn read_person(
    tx: &mut Tx<'_>,
    person: &Admitted,
    include: ClaimGroups,
    provider_claims: &ProviderClaims,
) -> Result<Option<PersonClaims>, StoreError> {
    let key = [person.person.into()];
    let of_groups = provisioned_group_names();
    let statements =
        [(ExternalUser::SELECT, &key[..]), (Answer::SELECT, &key[..]), (of_groups.as_str(), &key[..])];
    let statements = if include.groups { &statements[..] } else { &statements[..2] };
    let (mut facts, mut changed, mut groups) = (PersonClaims::default(), None, Vec::new());
    let (mut entries, mut address) = (Entries::default(), None);
    tx.query_all(statements, &mut |index, row| {
        match index {
            0 => {
                let user = ExternalUser::read(row)?;
                changed = Some(user.last_entry);
                address = user.email.map(str::to_owned);
                facts.add_external(&user);
            }
            1 => {
                let Answer { key, value } = Answer::read(row)?;
                if let Some(value) = value.filter(|value| !value.is_empty()) {
                    entries.take(key, value);
                }
            }
            _ => groups.push(row.text(0)?.to_owned()),
        }
        Ok(())
    })?;
    let Some(changed) = changed else { return Ok(None) };
    let (of_fields, entries): (Vec<_>, Vec<_>) =
        entries.all.into_iter().partition(|(key, _)| claim_of_answer(key).is_some());
    for (key, value) in &of_fields {
        if let Some(claim) = claim_of_answer(key).filter(|claim| facts.value_of(claim).is_none()) {
            facts.add(claim, value.as_str());
        }
    }
    facts.add_name(None);
    facts.add_changed(changed);
    if let Some(address) = address {
        facts.add(EMAIL.0, address.as_str());
        // an app may identify people by address, so it must not get a verified address from an untrusted provider, or
        // for another address
        let says =
            |name: &str, value: &str| provider_claims.iter().any(|(one, its)| one == name && its == value);
        let is_asserted = says("email_verified", "true") && says("email", &address);
        facts.add("email_verified", (person.contact.is_email_confirmed && is_asserted).to_string());
    }
    let is_own = |key: &str| is_entry(key) && !OF_DIRECTORIES.contains(&key);
    let entries = entries.into_iter().filter(|(key, _)| include.entries && is_own(key));
    facts.add_groups_and_entries(groups, entries.collect());
    Ok(Some(facts))
}

/// Reads the facts about a store's user, in one exchange.
fn read_user(
    tx: &mut Tx<'_>,
    user: &StoreUser,
    include: ClaimGroups,
) -> Result<Option<PersonClaims>, StoreError> {
    let columns: Vec<&str> = person_claims().map(|(_, column)| column).collect();
    let of_user = format!(
        "SELECT {}, email_address_confirmed, phone_number_confirmed, last_entry FROM user_account \
         WHERE store = ?1 AND rid = ?2",
        columns.join(", ")
    );
    let (key, owner) = ([user.store.into(), user.user.into()], [user.user.into()]);
    let of_groups = group_names();
    let mut statements = vec![(of_user.as_str(), &key[..])];
    if include.groups {
        statements.push((of_groups.as_str(), &owner[..]));
    }
    if include.entries {
        statements.push((Entry::SELECT, &owner[..]));
    }
    let (mut facts, mut exists, mut groups) = (PersonClaims::default(), false, Vec::new());
    let mut entries = Entries::default();
    tx.query_all(&statements, &mut |index, row| {
        match index {
            0 => {
                exists = true;
                facts.add_user(row)?;
            }
            1 if include.groups => groups.push(row.text(0)?.to_owned()),
            _ => {
                let Entry { key, value } = Entry::read(row)?;
                if let Some(value) = value.filter(|_| is_entry(key)) {
                    entries.take(key, value);
                }
            }
        }
        Ok(())
    })?;
    facts.add_groups_and_entries(groups, entries.all);
    Ok(exists.then_some(facts))
}

/// Whether an entry of this key is a claim: it must not replace a claim of the platform.
fn is_entry(key: &str) -> bool {
    scope_of(key).is_none() && !is_protected(key)
}
