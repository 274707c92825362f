//! Metadata of authenticator models: FIDO's signed metadata, refreshed or imported.
//!
//! Fetching and verifying happen between transactions. A verified snapshot takes effect in every process
//! at once: the security epoch advances, and each process reads the new snapshot on demand.

mod refresh;

use std::sync::Arc;

use chancery_record::{KEY, Name, OPEN, SHOWN, ShortText, SignedText, Timestamp, record};
use chancery_resource::{
    Action as A, Answer, Body, BodyForm, Call, Context, Custom, FetchResult, Figure, FigureSource,
    FigureUnit, MetadataSource, Method as M, Op, Permit::SystemAdmin, Problem, Purpose, Reach, Reply, Shape,
    Tx, Work, answer_form, load, read_form,
};
use chancery_trust::{Anchors, MetadataRefusal, Snapshot, verify};

pub use refresh::{RefreshResult, finish};

/// The source of the metadata: its name in paths, and the key of the one row.
const SOURCE: &str = "mds";

/// The figures of the metadata, for operators.
pub static FIGURES: [Figure; 3] = [
    Figure {
        name: "passkey_trust_refreshed_time",
        help: "When the metadata of authenticators in use were taken into use; 0: there are none",
        unit: FigureUnit::Time,
        source: FigureSource::Query("SELECT coalesce(max(refreshed_on), 0) FROM passkey_trust"),
    },
    Figure {
        name: "passkey_trust_due_time",
        help: "When newer metadata of authenticators are due",
        unit: FigureUnit::Time,
        source: FigureSource::Query("SELECT coalesce(max(next_update_on), 0) FROM passkey_trust"),
    },
    Figure {
        name: "passkey_trust_failures",
        help: "Refreshes of metadata of authenticators that failed one after another",
        unit: FigureUnit::Count,
        source: FigureSource::Query("SELECT coalesce(max(failures), 0) FROM passkey_trust_refresh"),
    },
];

record! {
    /// The metadata of authenticator models: the snapshot in use of FIDO's signed metadata.
    #[de("Metadaten der Authentikatoren", "Metadaten der Authentikatoren")]
    pub struct TrustSnapshot {
        /// Whose metadata they are.
        source: Name = KEY,
        /// The number of the snapshot, as assigned by the signer.
        snapshot_number: Option<i64> = SHOWN,
        /// The version of the snapshot: its number and the first digits of the SHA-256 of the signed content.
        snapshot_version: Option<Name> = SHOWN,
        /// When the snapshot was taken into use.
        refreshed_on: Option<Timestamp> = SHOWN,
        /// When the next snapshot is due.
        next_update_on: Option<Timestamp> = SHOWN,
        /// How many entries it has.
        entry_count: i64 = SHOWN,
        /// How many more could not be read and were left out.
        #[de("Ausgelassene Einträge")]
        skipped_entry_count: i64 = SHOWN,
        /// How many root certificates could not be read and were left out.
        #[de("Ausgelassene Zertifikate")]
        skipped_certificate_count: i64 = SHOWN,
        /// Why the first of both were left out.
        #[de("Grund der Auslassung")]
        skipped_because: Option<ShortText> = SHOWN,
        /// Why the last refresh failed, if it did.
        last_refresh_error: Option<ShortText> = SHOWN,
    }
}

record! {
    /// The status of the authenticator metadata.
    pub struct PasskeyTrustStatus {
        /// Whether there is a snapshot in use.
        #[de("Brauchbarer Stand vorhanden")]
        has_last_known_good_snapshot: bool = SHOWN,
        /// The number of the snapshot, as assigned by the signer.
        snapshot_number: Option<Name> = SHOWN,
        /// The version of the snapshot: its number and the first digits of the SHA-256 of the signed content.
        snapshot_version: Option<Name> = SHOWN,
        /// When the snapshot was taken into use.
        refreshed_on: Option<Timestamp> = SHOWN,
        /// When the next snapshot is due.
        next_update_on: Option<Timestamp> = SHOWN,
        /// The number of entries, without those that could not be read.
        entry_count: i64 = SHOWN,
        /// Why the last refresh failed; null when it did not.
        last_refresh_error: Option<ShortText> = SHOWN,
    }
}

record! {
    /// The signed text of the metadata service, for a server that cannot reach the service.
    pub struct SignedBlob {
        /// The text: a JSON Web Signature with its certificates.
        #[de("Signierte Metadaten", "Der Text: eine JSON Web Signature mit ihren Zertifikaten.")]
        signed_blob_jwt: SignedText = OPEN,
    }
}

/// The shape of the snapshot in use: one row.
pub static TRUST_SNAPSHOT: Shape = Shape::of::<TrustSnapshot>("TrustSnapshot", "passkey_trust", Reach::All);

static STATUS: BodyForm = BodyForm::of::<PasskeyTrustStatus>("PasskeyTrustStatus");
static BLOB: BodyForm = BodyForm::of::<SignedBlob>("SignedBlob");

const fn op(name: &'static str, method: M, path: &'static str, custom: Custom, summary: &'static str) -> Op {
    let action = A::Custom(custom.replying(Reply::Form(&STATUS)));
    Op::new(name, method, path, SystemAdmin, &TRUST_SNAPSHOT, action, summary)
}

/// The operations on the metadata.
pub static OPERATIONS: &[Op] = &[
    op(
        "GetPasskeyTrustStatus",
        M::Get,
        "/passkey-trust/mds",
        Custom::reading(show),
        "Reads the status of the authenticator metadata.",
    ),
    op(
        "RefreshPasskeyTrust",
        M::Post,
        "/passkey-trust/mds/refresh",
        Custom::working(Purpose::Passkey, refresh),
        "Fetches the signed metadata of authenticators from the configured source.",
    ),
    op(
        "ImportPasskeyTrust",
        M::Post,
        "/passkey-trust/mds/signed-offline-import",
        Custom::working(Purpose::Passkey, import).taking(Body::Form(&BLOB)),
        "Imports the signed metadata of authenticators from a file.",
    ),
];

/// A snapshot with a verified signature.
#[derive(Debug)]
pub struct VerifiedSnapshot {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The snapshot as it is stored.
    pub bytes: Vec<u8>,
}

impl VerifiedSnapshot {
    /// Verifies and reads a signed text. This takes too long for a transaction.
    ///
    /// # Errors
    /// The text cannot be verified, or the configured root is not a certificate.
    pub fn read(jwt: &str, source: &MetadataSource, now: Timestamp) -> Result<Self, MetadataRefusal> {
        let anchors = match source.root.as_deref() {
            Some((root, name)) => Anchors::of(root, name)?,
            None => Anchors::pinned(),
        };
        let snapshot = verify(jwt, &anchors, now)?;
        Ok(Self { bytes: snapshot.to_bytes(), snapshot })
    }

    /// Verifies and reads a fetched text.
    ///
    /// # Errors
    /// The reason why the text could not be fetched or verified, for people.
    pub fn of_fetched(
        fetched: &FetchResult,
        source: &MetadataSource,
        now: Timestamp,
    ) -> Result<Self, String> {
        let bytes = fetched.as_ref().map_err(|why| format!("The source does not answer well: {why}."))?;
        let text =
            std::str::from_utf8(bytes).map_err(|_| "What the source answered is no text.".to_owned())?;
        Self::read(text, source, now)
            .map_err(|refusal| format!("What the source answered is refused: {refusal}."))
    }
}

fn row(context: &Context, tx: &mut Tx<'_>) -> Result<chancery_resource::StoredRow, Problem> {
    load(context, tx, &TRUST_SNAPSHOT, None, SOURCE.into())
}

fn show(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let status = refresh::status_of(row(&call.context, tx)?.values)?;
    Ok(answer_form(call, status))
}

fn refresh(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let Some(fetch) = call.context.app.metadata.fetch.clone() else {
        let failure = Err("No source is configured.".to_owned());
        return finish(&call.context, tx, &failure).map(|finished| answer_form(call, finished.status));
    };
    let Some(fetched) = call.result::<FetchResult>() else {
        return Ok(Answer::after(Work::waiting(Purpose::Outbound, async move { fetch().await })));
    };
    let Some(read) = call.result::<Result<VerifiedSnapshot, String>>() else {
        let (context, now) = (Arc::clone(&call.context.app), call.context.now);
        return Ok(Answer::after(Work::new(Purpose::Passkey, move || {
            VerifiedSnapshot::of_fetched(&fetched, &context.metadata, now)
        })));
    };
    finish(&call.context, tx, &read).map(|finished| answer_form(call, finished.status))
}

fn import(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let Some(read) = call.result::<Result<VerifiedSnapshot, MetadataRefusal>>() else {
        let form: SignedBlob = read_form(call)?;
        let (context, now) = (Arc::clone(&call.context.app), call.context.now);
        let work = move || VerifiedSnapshot::read(form.signed_blob_jwt.as_str(), &context.metadata, now);
        return Ok(Answer::after(Work::new(Purpose::Passkey, work)));
    };
    let verified = read.as_ref().as_ref().map_err(|refusal| {
        Problem::wrong_field(SignedBlob::SIGNED_BLOB_JWT, format!("is refused: {refusal}"))
    })?;
    let status = refresh::import(call, tx, verified)?;
    Ok(answer_form(call, status))
}
