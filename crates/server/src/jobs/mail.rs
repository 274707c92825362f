//! Sends the mails that operations stored in the outbox.

use std::{path::PathBuf, sync::Arc, time::Duration};

use chancery_fetch::{Networks, Permission};
use chancery_mail::{DeliveryReport, MailServer, ServerOf, Transport, deliver_due};
use chancery_record::{Timestamp, Value};
use chancery_resource::{MasterKey, open_secret, random};
use chancery_store::{Class, Error, Store, Tx, selectable};
use chancery_web::App;
use uuid::Uuid;

use super::{Job, bounded};
use crate::start_error::BoxError;

/// The interval between checks of the outbox.
const INTERVAL: Duration = Duration::from_secs(1);
/// The interval while this process commits nothing: mails that are tried again wait so long.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);

/// The settings of the mail job.
#[derive(Clone, Debug)]
pub struct MailSettings {
    /// Decrypts sealed settings and mails.
    pub master: MasterKey,
    /// The program that delivers reset tokens of stores without a mail server.
    pub program: Option<PathBuf>,
    /// Networks outside the public internet in which mail servers may be.
    pub networks: Networks,
}

/// Sends the mails that are due. Two of these jobs run, so that one mail server that stalls does not hold
/// up the others.
pub fn job(
    app: &Arc<App>,
    permission: Permission,
    mail_settings: &MailSettings,
    now: fn() -> Timestamp,
) -> Job {
    let (app, mail_settings) = (Arc::clone(app), mail_settings.clone());
    let work = move || {
        let (app, mail_settings) = (Arc::clone(&app), mail_settings.clone());
        async move {
            let store = app.store.with(Class::Background);
            let send = || deliver(&store, permission, &mail_settings, now());
            while send().await.map_err(BoxError::from)?.left && !*app.stopping.borrow() {}
            Ok(())
        }
    };
    Job::new("mail", INTERVAL, work).idle(IDLE_INTERVAL).finished()
}

/// Sends some of the mails that are due.
pub async fn deliver(
    store: &Store,
    permission: Permission,
    mail_settings: &MailSettings,
    now: Timestamp,
) -> Result<DeliveryReport, Error> {
    let key = mail_settings.master.clone();
    let open = move |associated_data: &str, sealed: &[u8]| key.open(associated_data, sealed);
    let mail_settings = mail_settings.clone();
    let server_of: ServerOf = Arc::new(move |tx: &mut Tx<'_>, store, mfa_instance| {
        transport(tx, &mail_settings, store, mfa_instance)
    });
    // a clock that jumped ahead drops no mail, and one that was corrected delays none
    let over = bounded(store, now);
    let lease = Uuid::from_bytes(random::<16>());
    deliver_due(store, permission, now, over, lease, &open, &server_of).await
}

selectable! {
    /// The option with the mail server.
    struct MailServerOption {
        id: Uuid = "o.id",
        value: String = "o.value",
    }
}

const OF_STORE: &str = "FROM option_value o JOIN idp_instance i \
    ON i.id = o.apply_to_idp_instance_id WHERE i.rid = ?1 AND o.name = 'MailServerConfig'";
const OF_MFA_INSTANCE: &str =
    "FROM option_value o WHERE o.apply_to_mfa_instance_id = ?1 AND o.name = 'MailServerConfig'";

/// The carrier of a store's mail: the server of its option `MailServerConfig`, or of the MFA instance's own; the
/// program if that is empty.
fn transport(
    tx: &mut Tx<'_>,
    mail_settings: &MailSettings,
    store: i64,
    mfa_instance: Option<Uuid>,
) -> Result<Option<Transport>, Error> {
    let (source, owner) =
        mfa_instance.map_or((OF_STORE, Value::Int(store)), |id| (OF_MFA_INSTANCE, id.into()));
    let text = format!("SELECT {} {source}", MailServerOption::COLUMNS);
    let option = tx.one(&text, &[owner], MailServerOption::read)?;
    let opened = match &option {
        Some(MailServerOption { id, value }) => {
            open_secret(&mail_settings.master, "option_value", "value", &Value::Id(*id), value)
        }
        None => Some(String::new()),
    };
    let Some(opened) = opened else {
        // treating it as empty would hand reset tokens to the program
        tracing::error!(store, "MailServerConfig cannot be opened with this master key: mail waits");
        return Ok(None);
    };
    if opened.is_empty() {
        return Ok(mail_settings.program.clone().map(Transport::Program));
    }
    Ok(mail_server(store, &opened).map(|server| server.within(mail_settings.networks.clone()).into()))
}

fn mail_server(store: i64, text: &str) -> Option<MailServer> {
    let server = MailServer::parse(text);
    server.inspect_err(|wrong| tracing::warn!(store, wrong, "MailServerConfig is not usable")).ok()
}
