//! Refused authorization and token requests of client apps, which show administrators why an app does not work.

use chancery_record::{KEY, Name, SHOWN, ShortText, Timestamp, id_types, record};
use chancery_resource::{Action as A, Method as M, Op, Permit::TenantMember, Reach, Shape};

use super::{CLIENT_APP, ClientAppId};

id_types! {
    /// The id of a refused request.
    ClientAppRefusalId
}

record! {
    /// Refused requests of a client app to the same endpoint with the same error.
    #[de("Abgelehnte Anfrage", "Abgelehnte Anfragen", "Abgelehnte Anfragen einer Client-App an denselben Endpunkt mit demselben Fehler.")]
    pub struct ClientAppRefusal {
        /// The entry.
        id: ClientAppRefusalId = KEY,
        /// The client app.
        client_app_id: ClientAppId = SHOWN,
        /// Path of the endpoint below the issuer.
        #[de("Endpunkt", "Der Pfad des Endpunkts unter dem Aussteller.")]
        endpoint: Name = SHOWN,
        /// The error code.
        #[de("Fehler", "Der Fehlercode.")]
        error: Name = SHOWN,
        /// Reason for the refusal, for developers.
        #[de(_, "Der Grund der Ablehnung, für Entwickler.")]
        reason: ShortText = SHOWN,
        /// The parameters that were sent, without secrets.
        #[de("Gesendet", "Die gesendeten Parameter, ohne Geheimnisse.")]
        sent: ShortText = SHOWN,
        /// The client app's registered settings at that time, without secrets.
        #[de("Registriert", "Die damals registrierten Einstellungen der Client-App, ohne Geheimnisse.")]
        registered: ShortText = SHOWN,
        /// When a request of this kind was first refused.
        #[de("Zuerst abgelehnt am", "Wann eine Anfrage dieser Art zuerst abgelehnt wurde.")]
        first_on: Timestamp = SHOWN,
        /// When a request of this kind was last recorded. Such requests are recorded at most once an hour.
        #[de(
            "Zuletzt abgelehnt am",
            "Wann eine Anfrage dieser Art zuletzt festgehalten wurde. Solche Anfragen werden höchstens einmal pro Stunde festgehalten."
        )]
        last_on: Timestamp = SHOWN,
    }
}

/// The shape of refused requests, which the server records.
pub static CLIENT_APP_REFUSAL: Shape = Shape::of::<ClientAppRefusal>(
    "ClientAppRefusal",
    "(SELECT rid, id, client_app_id, endpoint, error, reason, sent, registered, first_on, last_on, \
     CAST(0 AS BIGINT) AS last_entry FROM client_app_refusal)",
    Reach::Of(ClientAppRefusal::CLIENT_APP_ID.field(), &CLIENT_APP),
);

/// The operations on refused requests.
pub static OPERATIONS: &[Op] = &[
    Op::new(
        "GetClientAppRefusals",
        M::Get,
        "/ClientAppRefusal",
        TenantMember,
        &CLIENT_APP_REFUSAL,
        A::List,
        "Lists the kinds of authorization and token requests of client apps that were refused in the last 30 days.",
    )
    .added(),
    Op::new(
        "GetClientAppRefusal",
        M::Get,
        "/ClientAppRefusal/{id}",
        TenantMember,
        &CLIENT_APP_REFUSAL,
        A::Read,
        "Reads a kind of refused requests of a client app.",
    )
    .added(),
];
