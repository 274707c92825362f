//! An outbox for tests: queueing, delivering, looking.

use std::sync::Arc;

use chancery_fetch::Outbound;
use chancery_mail::{
    Counts, DeliveryReport, Kind, MailServer, NewMail, ServerOf, associated_data, count, deliver_due, enqueue,
};
use chancery_record::{Secret, Timestamp};
use chancery_store::{Error, Mode, Store, selectable};
use uuid::Uuid;

selectable! {
    /// A mail in the outbox.
    struct StoredMail<'r> from "FROM mail_message WHERE id = ?1" {
        last_error: String = "last_error",
        sealed_data: &'r [u8] = "sealed_data",
    }
}

/// 2026-11-21T09:30:00Z
pub const NOW: Timestamp = Timestamp(1_795_253_400_000);
pub const SECOND: i64 = 1000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
/// The store that has a mail server.
pub const STORE: i64 = 7;

pub fn mail(number: u128) -> NewMail {
    let id = Uuid::from_u128(number);
    let data = r#"{"name": "Jörg", "store": "Bücherei", "token": "tulip", "valid_until": 1795257000000}"#;
    NewMail {
        id,
        store: STORE,
        mfa_instance: None,
        person: Some(Uuid::from_u128(number)),
        kind: Kind::PasswordReset,
        sender: "Bücherei <noreply@example.com>".to_owned(),
        recipient: format!("user{number}@example.com"),
        locale: Some("de-DE".to_owned()),
        sealed_data: seal(&associated_data(id), data),
        created_on: NOW,
        expires_on: NOW.plus(HOUR),
    }
}

/// A stand-in for encryption: opens only with the same associated data.
fn seal(associated_data: &str, data: &str) -> Vec<u8> {
    format!("{associated_data}|{data}").into_bytes()
}

pub fn open(associated_data: &str, sealed: &[u8]) -> Option<Secret> {
    let data = sealed.strip_prefix(associated_data.as_bytes())?.strip_prefix(b"|")?;
    Some(Secret::new(data))
}

pub struct Fixture {
    pub store: Store,
    pub server_of: ServerOf,
}

impl Fixture {
    pub fn new(store: Store, server: MailServer) -> Self {
        let server_of: ServerOf =
            Arc::new(move |_, number, _| Ok((number == STORE).then(|| server.clone().into())));
        Self { store, server_of }
    }

    pub async fn queue(&self, mail: NewMail) {
        let queue = move |tx: &mut chancery_store::Tx<'_>| enqueue(tx, mail.clone());
        self.store.run::<_, Error, _>("Queue", Mode::Write, None, queue).await.unwrap();
    }

    /// One call of `deliver_due`, with a lease of its own.
    pub async fn deliver(&self, now: Timestamp, lease: u128) -> DeliveryReport {
        let permission = Outbound::On.permission().unwrap();
        deliver_due(&self.store, permission, now, now, Uuid::from_u128(lease), &open, &self.server_of)
            .await
            .unwrap()
    }

    pub async fn counts(&self) -> (i64, i64) {
        let counts = self.store.run::<Counts, Error, _>("Count", Mode::Quick, None, count).await.unwrap();
        (counts.waiting, counts.dead)
    }

    /// The last error of a mail, and the bytes of its data that are retained.
    pub async fn last_error(&self, number: u128) -> (String, usize) {
        let id = Uuid::from_u128(number);
        let read = move |tx: &mut chancery_store::Tx<'_>| {
            tx.one(StoredMail::SELECT, &[id.into()], |row| {
                let StoredMail { last_error, sealed_data } = StoredMail::read(row)?;
                Ok((last_error, sealed_data.len()))
            })
        };
        self.store.run::<_, Error, _>("Read", Mode::Quick, None, read).await.unwrap().unwrap()
    }
}

pub const fn delivered(sent: u32, retried: u32, given_up: u32) -> DeliveryReport {
    DeliveryReport { sent, retried, given_up, left: false }
}
