//! Federated identities of a client app: it authenticates with another issuer's tokens (RFC 7523).

use chancery_record::{Description, FIXED, Identifier, KEY, Name, OPEN, SHOWN, Token, Url, id_types, record};
use chancery_resource::{Op, Parent, Reach, Shape, Unique, added, standard};

use super::{CLIENT_APP, ClientAppId, controller::note};

id_types! {
    /// The id of a federated identity.
    ClientAppFederatedIdentityId
}

record! {
    /// A federated identity: an identity at another issuer with which a client app can authenticate (RFC 7523).
    #[de(
        "Verbundidentität",
        "Verbundidentitäten",
        "Eine Verbundidentität: eine Identität bei einem anderen Aussteller, mit der sich eine Client-App authentifizieren kann (RFC 7523)."
    )]
    pub struct ClientAppFederatedIdentity {
        /// The federated identity.
        id: ClientAppFederatedIdentityId = KEY,
        /// Its name, unique for the client app.
        name: Name = OPEN,
        /// The issuer (`iss`) of the identity.
        issuer: Url = OPEN,
        /// The subject (`sub`) at the issuer.
        subject: Identifier = OPEN,
        /// Required audience (`aud`) of the tokens.
        #[de("Zielgruppe des Tokens", "Die erforderliche Zielgruppe (`aud`) der Token.")]
        audience: Option<Identifier> = OPEN,
        /// What it is for.
        description: Option<Description> = OPEN,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// Concurrency token. It changes with every write to the federated identity.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of federated identities.
pub static CLIENT_APP_FEDERATED_IDENTITY: Shape = Shape::of::<ClientAppFederatedIdentity>(
    "ClientAppFederatedIdentity",
    "client_app_federated_identity",
    Reach::Of(ClientAppFederatedIdentity::CLIENT_APP_ID.field(), &CLIENT_APP),
)
.sensitive()
.belonging(&[Parent::new(ClientAppFederatedIdentity::CLIENT_APP_ID, &CLIENT_APP)])
.unique(&[
    Unique::new("client_app_federated_identity__id", &[ClientAppFederatedIdentity::ID.field()]),
    Unique::new(
        "client_app_federated_identity__client_app_id__name",
        &[ClientAppFederatedIdentity::CLIENT_APP_ID.field(), ClientAppFederatedIdentity::NAME.field()],
    ),
])
.after_write(|context, tx, values| note(context, tx, ClientAppFederatedIdentity::CLIENT_APP_ID.get(values)?));

/// The operations on federated identities.
pub static OPERATIONS: [Op; 9] = added(standard!(
    "ClientAppFederatedIdentity",
    "/ClientAppFederatedIdentity",
    TenantMember,
    SubscriptionAdmin,
    &CLIENT_APP_FEDERATED_IDENTITY
));
