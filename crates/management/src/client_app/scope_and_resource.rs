//! Scopes and resources of a client app: what it may request tokens for.

use chancery_record::{Description, FIXED, KEY, Key, Name, OPEN, SHOWN, Token, id_types, record};
use chancery_resource::{
    Action as A, Custom, Findings, Method as M, Op, Parent, Permit::TenantMember, ProvidedFields, Reach,
    Rules, Run, Shape, Unique, list_of, standard,
};

use super::{CLIENT_APP, ClientAppId, resource_key};

id_types! {
    /// The id of a scope.
    ClientAppScopeId,
    /// The id of a resource.
    ClientAppResourceId,
}

record! {
    /// A scope that a client app can be granted (RFC 6749, section 3.3).
    #[de("Scope", "Scopes", "Ein Scope, der einer Client-App gewährt werden kann (RFC 6749, Abschnitt 3.3).")]
    pub struct ClientAppScope {
        /// The scope.
        id: ClientAppScopeId = KEY,
        /// Scope value in requests, unique for the client app.
        #[de(_, "Der Scope-Wert in Anfragen, eindeutig für die Client-App.")]
        key: Key = OPEN,
        /// Its name. Default: the key.
        name: Option<Name> = OPEN,
        /// What the scope allows.
        description: Option<Description> = OPEN,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// Concurrency token. It changes with every write to the scope.
        concurrency_token: Token = SHOWN,
    }
}

record! {
    /// A resource for which a client app can obtain tokens (RFC 8707).
    #[de(
        "Ressource einer Client-App",
        "Ressourcen von Client-Apps",
        "Eine Ressource, für die eine Client-App Token erhalten kann (RFC 8707)."
    )]
    pub struct ClientAppResource {
        /// The resource.
        id: ClientAppResourceId = KEY,
        /// Resource indicator in requests, unique for the client app. It belongs to the subscription whose client app had it first.
        #[de(
            _,
            "Der Ressourcenindikator in Anfragen, eindeutig für die Client-App. Er gehört dem Abonnement, dessen Client-App ihn zuerst hatte."
        )]
        key: Key = OPEN,
        /// Its name. Default: the key.
        name: Option<Name> = OPEN,
        /// Description of the resource.
        description: Option<Description> = OPEN,
        /// The client app.
        client_app_id: ClientAppId = FIXED,
        /// Concurrency token. It changes with every write to the resource.
        concurrency_token: Token = SHOWN,
    }
}

impl Rules for ClientAppScope {
    fn adjust(&mut self, _: Option<&Self>, _: &ProvidedFields<'_, Self>) {
        self.name = self.name.take().or_else(|| Name::new(self.key.as_str()).ok());
    }

    fn check(&self, wrong: &mut Findings) {
        let plain = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '"' | '\\');
        if !self.key.as_str().chars().all(plain) {
            wrong.add(
                Self::KEY,
                "must be a scope: letters, digits and signs without blanks, quotes and backslashes",
            );
        }
    }
}

impl Rules for ClientAppResource {
    fn adjust(&mut self, _: Option<&Self>, _: &ProvidedFields<'_, Self>) {
        self.name = self.name.take().or_else(|| Name::new(self.key.as_str()).ok());
    }
}

/// The maximum number of scopes of a client app: the token endpoint reads all of them.
const MAX_SCOPES: usize = 1000;

/// The shape of scopes.
pub static CLIENT_APP_SCOPE: Shape = Shape::of::<ClientAppScope>(
    "ClientAppScope",
    "client_app_scope",
    Reach::Of(ClientAppScope::CLIENT_APP_ID.field(), &CLIENT_APP),
)
.belonging(&[Parent::new(ClientAppScope::CLIENT_APP_ID, &CLIENT_APP).of_at_most(MAX_SCOPES)])
.unique(&[
    Unique::new("client_app_scope__id", &[ClientAppScope::ID.field()]),
    Unique::new(
        "client_app_scope__client_app_id__key",
        &[ClientAppScope::CLIENT_APP_ID.field(), ClientAppScope::KEY.field()],
    ),
])
.ruled::<ClientAppScope>()
.bumps_epoch();

/// The shape of resources.
pub static CLIENT_APP_RESOURCE: Shape = Shape::of::<ClientAppResource>(
    "ClientAppResource",
    "client_app_resource",
    Reach::Of(ClientAppResource::CLIENT_APP_ID.field(), &CLIENT_APP),
)
.sensitive()
.belonging(&[Parent::new(ClientAppResource::CLIENT_APP_ID, &CLIENT_APP)])
.unique(&[
    Unique::new("client_app_resource__id", &[ClientAppResource::ID.field()]),
    Unique::new(
        "client_app_resource__client_app_id__key",
        &[ClientAppResource::CLIENT_APP_ID.field(), ClientAppResource::KEY.field()],
    ),
])
.ruled::<ClientAppResource>()
.validate_rows(resource_key::claim)
.bumps_epoch();

/// Operations on scopes.
pub static SCOPES: [Op; 9] =
    standard!("ClientAppScope", "/ClientAppScope", TenantMember, SubscriptionAdmin, &CLIENT_APP_SCOPE);
/// Operations on resources.
pub static RESOURCES: [Op; 9] = standard!(
    "ClientAppResource",
    "/ClientAppResource",
    TenantMember,
    SubscriptionAdmin,
    &CLIENT_APP_RESOURCE
);

/// The operation that lists the children of one client app.
pub const fn of_client_app(name: &'static str, path: &'static str, shape: &'static Shape, run: Run) -> Op {
    let about = "Lists the objects of this type that belong to a client app.";
    Op::new(name, M::Get, path, TenantMember, shape, A::Custom(Custom::listing(run)), about)
}

/// The operation that lists the scopes of a client app.
pub static SCOPES_OF: &[Op] = &[of_client_app(
    "GetClientAppScopesByClientApp",
    "/ClientAppScope/clientapp/{clientAppId}",
    &CLIENT_APP_SCOPE,
    |call, tx| list_of(call, tx, &CLIENT_APP, 0, ClientAppScope::CLIENT_APP_ID),
)];
/// The operation that lists the resources of a client app.
pub static RESOURCES_OF: &[Op] = &[of_client_app(
    "GetClientAppResourcesByClientApp",
    "/ClientAppResource/clientapp/{clientAppId}",
    &CLIENT_APP_RESOURCE,
    |call, tx| list_of(call, tx, &CLIENT_APP, 0, ClientAppResource::CLIENT_APP_ID),
)];
