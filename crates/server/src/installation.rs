//! The recorded identity of the installation, and whether this database is a copy of it.

use chancery_fetch::Outbound;
use chancery_record::{Timestamp, Value};
use chancery_store::{DatabaseLocation, Error, Mode, StateTable, Store, Tx, selectable};
use chancery_web::now;

use crate::{Config, StartError, start_error::BoxError};

/// The recorded identity of an installation.
pub struct Installation {
    public_url: Option<String>,
    location: DatabaseLocation,
    era: String,
    is_restoring: bool,
}

impl Installation {
    /// The identity of an installation that was never restored.
    const fn new(public_url: Option<String>, location: DatabaseLocation) -> Self {
        Self { public_url, location, era: String::new(), is_restoring: false }
    }

    /// Inserts the row. `clause` handles an existing one.
    fn insert(&self, tx: &mut Tx<'_>, clause: &str, now: Timestamp) -> Result<(), Error> {
        let text = StateTable::Installation.insert(format_args!(
            "(id, public_url, place, born, era, is_restoring, adopted_on) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6) {clause}"
        ));
        let text_or_null = |text: &Option<String>| text.clone().map_or(Value::Null, Value::Text);
        let parameters = [
            text_or_null(&self.public_url),
            self.location.location.as_str().into(),
            text_or_null(&self.location.created),
            self.era.as_str().into(),
            Value::Bool(self.is_restoring),
            now.0.into(),
        ];
        tx.execute(&text, &parameters).map(drop)
    }
}

/// The status of the installation at a start.
pub struct InstallationStatus {
    /// Whether outbound traffic is enabled.
    pub outbound: Outbound,
    /// The binding of access tokens and other stateless values; each restore begins another era.
    pub era: String,
}

/// The reason and the remedy for a database whose restore was interrupted.
const UNFINISHED: &str = "a restore of it did not end: run chancery restore again, to its end";

selectable! {
    /// The row of the installation.
    struct StoredInstallation from "FROM installation" {
        public_url: Option<String> = "public_url",
        location: String = "place",
        created: Option<String> = "born",
        era: String = "era",
        is_restoring: bool = "is_restoring",
    }
}

impl From<StoredInstallation> for Installation {
    fn from(stored: StoredInstallation) -> Self {
        let StoredInstallation { public_url, location, created, era, is_restoring } = stored;
        Self { public_url, location: DatabaseLocation { location, created }, era, is_restoring }
    }
}

fn read(tx: &mut Tx<'_>) -> Result<Option<Installation>, Error> {
    Ok(tx.one(StoredInstallation::SELECT, &[], StoredInstallation::read)?.map(Installation::from))
}

fn failed(error: Error) -> StartError {
    StartError::new("cannot read what the installation is", error)
}

/// Compares the recorded identity with the database and public URL of this process; the first start records it.
///
/// # Errors
/// A restore did not end.
pub async fn learn(store: &Store, config: &Config) -> Result<InstallationStatus, StartError> {
    let location = store.location().await.map_err(failed)?;
    let (public_url, here) = (config.public_url.clone(), location.clone());
    let known = store.run("LearnInstallation", Mode::Write, None, move |tx| {
        if read(tx)?.is_none() {
            let first = Installation::new(public_url.clone(), here.clone());
            first.insert(tx, "ON CONFLICT DO NOTHING", now())?;
        }
        let known = read(tx)?;
        // a public URL that is configured for the first time does not make a copy
        if let (Some(Installation { public_url: None, location, .. }), Some(url)) = (&known, &public_url)
            && location.is(&here)
        {
            let named = StateTable::Installation.update("SET public_url = ?1 WHERE public_url IS NULL");
            tx.queue(&named, vec![url.as_str().into()])?;
        }
        Ok::<_, Error>(known)
    });
    let known = known.await.map_err(failed)?;
    let known = known.ok_or_else(|| failed(Error::Internal("its row is not there".into())))?;
    if known.is_restoring {
        return Err(StartError::new("the database is being restored", UNFINISHED));
    }
    let why = why_copy(&known, &location, config.public_url.as_deref());
    warn_of_name(&known, config.public_url.as_deref());
    let outbound = match why {
        Some(why) => Outbound::Copy(why.into()),
        None => config.outbound.clone(),
    };
    if let Err(quiet) = outbound.permission() {
        tracing::warn!(%quiet, "no mails, texts, events or sign-outs are sent, and no program is called: what waits, waits");
    }
    Ok(InstallationStatus { outbound, era: known.era })
}

/// The reason why the database is a copy, as a sentence. A public URL that follows from the address is not compared, since ports change.
fn why_copy(known: &Installation, location: &DatabaseLocation, public_url: Option<&str>) -> Option<String> {
    if !known.location.is(location) {
        return Some(format!(
            "Its database is at {} and the installation's was at {}.",
            describe(location),
            describe(&known.location)
        ));
    }
    match (known.public_url.as_deref(), public_url) {
        (Some(was), Some(is)) if was != is => {
            Some(format!("Its public URL is {is} and the installation's was {was}."))
        }
        (Some(was), None) => Some(format!("It has no public URL and the installation's was {was}.")),
        _ => None,
    }
}

pub fn describe(location: &DatabaseLocation) -> String {
    if location.location.is_empty() { "a place that is not known".to_owned() } else { location.to_text() }
}

/// Warns of another public URL: it is another issuer, and passkeys are bound to a host name.
fn warn_of_name(known: &Installation, public_url: Option<&str>) {
    if let (Some(was), Some(is)) = (known.public_url.as_deref(), public_url)
        && was != is
    {
        tracing::warn!(
            was,
            is,
            "the public URL is another: tokens and sessions of the former issuer are refused, client apps must be configured \
             with the new one, and passkeys of the former host name work only where PasskeyRelyingPartyId still names it"
        );
    }
}

/// Begins a restore and another era: stateless tokens become invalid, and no server starts until the restore has ended.
pub fn begin_restoring(tx: &mut Tx<'_>, era: &str) -> Result<(), Error> {
    let nowhere = DatabaseLocation { location: String::new(), created: None };
    let restoring =
        Installation { era: era.to_owned(), is_restoring: true, ..Installation::new(None, nowhere) };
    let clause = "ON CONFLICT (id) DO UPDATE SET era = excluded.era, is_restoring = excluded.is_restoring";
    restoring.insert(tx, clause, Timestamp(0))?;
    tx.advance_epoch()
}

/// Records that the full check of a copied file succeeded.
pub async fn note_checked(store: &Store) -> Result<(), Error> {
    let location = store.location().await?;
    store.run("NoteChecked", Mode::Write, None, move |tx| note(tx, &location, true)).await
}

/// Ends a restore, after the full check of the database.
pub fn end_restoring(tx: &mut Tx<'_>, location: &DatabaseLocation) -> Result<(), Error> {
    note(tx, location, false)
}

/// Records the location at which the full check succeeded. An unfinished restore stays unfinished if `is_left` is true.
fn note(tx: &mut Tx<'_>, location: &DatabaseLocation, is_left: bool) -> Result<(), Error> {
    let text =
        StateTable::Installation.update("SET checked_place = ?1, is_restoring = (is_restoring AND ?2)");
    tx.execute(&text, &[location.to_text().into(), Value::Bool(is_left)]).map(drop)
}

/// Records the current identity of the installation.
pub fn record(
    tx: &mut Tx<'_>,
    public_url: Option<&str>,
    location: &DatabaseLocation,
    now: Timestamp,
) -> Result<(), Error> {
    let is = Installation::new(public_url.map(str::to_owned), location.clone());
    let clause = "ON CONFLICT (id) DO UPDATE SET public_url = excluded.public_url, place = excluded.place, \
        born = excluded.born, adopted_on = excluded.adopted_on";
    is.insert(tx, clause, now)
}

/// The recorded identity of a database that is copied to another one; none if no server of this release has started on it.
///
/// # Errors
/// A restore of it is unfinished.
pub async fn read_source(source: &Store) -> Result<Option<Installation>, BoxError> {
    let known = source.run("ReadInstallation", Mode::Long, None, read).await;
    let known = known?;
    if known.as_ref().is_some_and(|known| known.is_restoring) {
        return Err(format!("the database is being restored: {UNFINISHED}").into());
    }
    Ok(known)
}

/// Records the identity of a source in the target to which it was copied. The target is the installation, or a copy if the source was a
/// copy. Tokens that a restore invalidated stay invalid.
pub async fn record_target(known: Installation, source: &Store, target: &Store) -> Result<(), Error> {
    let is_copy = !known.location.is(&source.location().await?);
    let location = if is_copy { known.location.clone() } else { target.location().await? };
    let is = Installation { location, ..known };
    target
        .run("RecordTarget", Mode::Write, None, move |tx| is.insert(tx, "ON CONFLICT DO NOTHING", now()))
        .await
}

#[cfg(test)]
mod tests {
    use chancery_store::DatabaseLocation;

    use super::{Installation, why_copy};

    #[test]
    fn a_copy_is_found_by_its_place_or_its_name() {
        let location = |location: &str| DatabaseLocation { location: location.to_owned(), created: None };
        let known = |public_url: Option<&str>| Installation {
            public_url: public_url.map(str::to_owned),
            location: location("inode 1"),
            era: String::new(),
            is_restoring: false,
        };
        let (id, staging) = (Some("https://id.example.com"), Some("https://staging.example.com"));
        for (was, is, at, is_copy) in [
            (id, id, "inode 1", false),
            (id, id, "inode 2", true),
            (id, staging, "inode 1", true),
            (id, None, "inode 1", true),
            (None, id, "inode 1", false),
            (None, None, "inode 1", false),
            (None, None, "inode 2", true),
        ] {
            assert_eq!(why_copy(&known(was), &location(at), is).is_some(), is_copy, "{was:?} {is:?} {at}");
        }
    }
}
