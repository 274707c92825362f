//! Erased contents: allowed only for a person who was deleted.

use std::collections::HashMap;

use uuid::Uuid;

use crate::{
    check::CheckedEntry,
    entry::key_person,
    finding::{FindingKind, Report, VerifyError},
    line::EntryLine,
};

/// The areas whose entries are about one person.
const PERSONAL: [&str; 11] = [
    "ApplicationIdentity",
    "ApplicationUser",
    "ApplicationUserProfile",
    "IdentityReplacement",
    "PasskeyCredential",
    "RecoveryTransaction",
    "SecurityContact",
    "TemporaryAccessPass",
    "User",
    "UserImage",
    "UserProfile",
];

/// The maximum number of persons in memory, at about 50 bytes each.
const MAX_PERSONS: usize = 4 << 20;

/// The maximum number of listed erased entries of persons not yet found to be deleted; the others are counted.
const MAX_LISTED: usize = 1 << 20;

/// The persons who were deleted, and the erased entries of those who were not (yet).
#[derive(Default)]
pub(crate) struct Erasures {
    persons: HashMap<Uuid, Person>,
    listed: usize,
}

enum Person {
    Deleted,
    /// The person's erased entries, by position and number, and how many more there are.
    Erased(Vec<(u64, i64)>, u64),
}

impl Erasures {
    /// Records an entry that deletes a person or is erased, and reports one that may not be erased at all.
    ///
    /// # Errors
    /// [`VerifyError::TooManyPersons`].
    pub fn record(
        &mut self,
        entry: &EntryLine,
        checked: &CheckedEntry,
        report: &mut Report<'_>,
    ) -> Result<(), VerifyError> {
        // a deletion with contents only hid the person; one without contents destroyed the person's key
        let deletes = checked.signed
            && ["User", "ApplicationUser"].contains(&entry.area.as_str())
            && entry.action == "Deleted"
            && entry.original_digest.is_none()
            && entry.current_digest.is_none();
        if !deletes && !checked.erased {
            return Ok(());
        }
        // entries about the person, and those older than the member, have the person in their key
        let person = entry.person.id().or_else(|| key_person(&entry.primary_key));
        let person = person.filter(|_| PERSONAL.contains(&entry.area.as_str()));
        let Some(person) = person else {
            if checked.erased {
                let detail = "its contents are gone, but are no person's";
                report.entry(FindingKind::Content, checked.position, checked.id, detail);
            }
            return Ok(());
        };
        if self.persons.len() >= MAX_PERSONS && !self.persons.contains_key(&person) {
            return Err(VerifyError::TooManyPersons);
        }
        let state = self.persons.entry(person).or_insert_with(|| Person::Erased(Vec::new(), 0));
        if deletes {
            if let Person::Erased(entries, _) = state {
                self.listed -= entries.len();
            }
            *state = Person::Deleted;
        } else if let Person::Erased(entries, more) = state {
            if self.listed < MAX_LISTED {
                self.listed += 1;
                entries.push((checked.position, checked.id));
            } else {
                *more += 1;
            }
        }
        Ok(())
    }

    /// Reports erased entries of persons who were never deleted.
    pub fn finish(self, report: &mut Report<'_>) {
        let mut erased_entries = Vec::with_capacity(self.listed);
        let mut unlisted = 0;
        for (person, state) in self.persons {
            if let Person::Erased(entries, more) = state {
                erased_entries.extend(entries.into_iter().map(|(position, id)| (position, id, person)));
                unlisted += more;
            }
        }
        erased_entries.sort_unstable();
        for (position, id, person) in erased_entries {
            let detail = format!("its contents are gone, but nothing shows that person {person} was deleted");
            report.entry(FindingKind::Erasure, position, id, detail);
        }
        if unlisted > 0 {
            let detail =
                format!("contents of {unlisted} more entries are gone of persons not shown to be deleted");
            report.file(FindingKind::Erasure, detail);
        }
    }
}
