//! What a sign-in needs to know of a client app, as administrators set it. It is cached until the security epoch
//! advances.

mod load;

use std::{net::IpAddr, sync::Arc};

pub use chancery_federation::Kind as ProviderKind;
use chancery_flow::TenantFacts;
use chancery_oauth::{
    ClientFacts, OFFLINE_ACCESS, Refusal, Scope, SecurityProfile, SignInFacts, Unserved, Use, check_use,
};
use chancery_record::fold;
use chancery_resource::{
    CONSOLE, PLATFORM,
    settings::{Options, TenantOption, UserStoreOption},
};
use chancery_store::{Error, Mode, Store};
use quick_cache::sync::Cache;
use uuid::Uuid;

pub use self::load::load;
use crate::{claims::RulesInForce, granted::Granted, second_factor::OfferedFactor};

/// Why a client app gets no tokens.
pub const NOT_SERVING: &str = "The client app is not enabled, or its subscription is not active.";
/// The number of client apps cached.
const CACHED: usize = 10_000;

/// When a person is asked for consent (`accessGrantConsent`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentMode {
    /// Never.
    Implicit,
    /// Until there is consent.
    Explicit,
    /// Each time.
    Systematic,
    /// Never: an administrator consents.
    External,
}

/// Whether authorization requests need PKCE (`pkce`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PkceMode {
    /// As the tenant's option PkceRequired has it.
    AsTenant,
    /// They do.
    Required,
    /// They do not.
    Optional,
}

/// A client app that people sign in to.
#[expect(clippy::struct_excessive_bools, reason = "the members of a client app are what they are")]
#[derive(Clone, Debug)]
pub struct Application {
    /// Its id.
    pub id: Uuid,
    /// Its row number.
    pub rid: i64,
    /// Its subscription.
    pub subscription: Uuid,
    /// Its name.
    pub name: String,
    /// `enabled`
    pub enabled: bool,
    /// `allowUserLogin`
    pub allow_user_login: bool,
    /// `isPublic`
    pub is_public: bool,
    /// `isNativeApplication`
    pub is_native: bool,
    /// `allowDeviceAuthorizationGrant`
    pub allows_devices: bool,
    /// `isRestricted`
    pub is_restricted: bool,
    /// `allowCrossSubscription`
    pub allow_cross_subscription: bool,
    /// `scopeFilterEnabled`
    pub scope_filter_enabled: bool,
    /// `resourceFilterEnabled`
    pub filters_resources: bool,
    /// `includeGroupsClaims`
    pub includes_groups: bool,
    /// `clientUri`
    pub client_uri: Option<String>,
    /// `logoUri`
    pub logo_uri: Option<String>,
    /// Whether people sign out of it without being asked (`logoutConsent`).
    pub signs_out_silently: bool,
    /// `accessGrantConsent`
    pub consent: ConsentMode,
    /// `allowedResponseTypes`
    pub allowed_response_types: String,
    /// `pkce`
    pub pkce: PkceMode,
    /// Whether ID tokens have the claims of the granted scopes (`idTokenClaims`).
    pub tells_in_id_token: bool,
    /// Whether it gets a refresh token with every code (`refreshTokens` is Session).
    pub refreshes_in_session: bool,
    /// `securityProfile`
    pub security_profile: SecurityProfile,
    /// Its settings that are not served.
    pub unserved: Vec<Unserved>,
    /// Whether a second factor is asked for.
    pub asks_for_second_factor: bool,
    /// The redirect URIs of type Login.
    pub login_uris: Vec<String>,
    /// The redirect URIs of type Logout.
    pub logout_uris: Vec<String>,
    /// Its own scopes.
    pub scopes: Vec<OwnScope>,
    /// The keys of its own resources.
    pub resources: Vec<String>,
    /// What administrators say of it to its views.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// The tenants in which it serves.
    pub tenants: Vec<ServingTenant>,
    /// The claim rules in force, as far as they were asked for.
    pub rules: Arc<RulesInForce>,
    /// The security epoch at which it was read.
    pub epoch: i64,
}

/// A scope of a client app.
#[derive(Clone, Debug)]
pub struct OwnScope {
    /// What it is called in requests.
    pub key: String,
    /// What it is called to people.
    pub name: String,
    /// What it allows.
    pub description: Option<String>,
}

/// A tenant in which a client app serves.
#[derive(Clone, Debug)]
pub struct ServingTenant {
    /// The tenant and the instances that it and the client app have in common.
    pub facts: TenantFacts,
    /// Its name.
    pub name: String,
    /// Its subscription.
    pub subscription: Uuid,
    /// The user stores among the instances, in the order in which a name is looked for.
    pub stores: Vec<OfferedStore>,
    /// The external identity providers among them, in the order in which they are offered.
    pub providers: Vec<OfferedProvider>,
    /// Its second factors that can be used, in order.
    pub factors: Vec<OfferedFactor>,
    /// Its options.
    pub options: Arc<Options<TenantOption>>,
    /// The ranges of addresses from which it is chosen: the first and the last address of each.
    pub ranges: Vec<(IpAddr, IpAddr)>,
    /// Whether it has questionnaire items.
    pub asks: bool,
}

/// What pages tell of an instance.
#[derive(Clone, Debug)]
pub struct About {
    /// Its name.
    pub name: String,
    /// The path of its picture at this server, where it has one.
    pub icon: Option<String>,
    /// What administrators say of it to views.
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

impl About {
    /// As views get it.
    pub fn told(&self) -> serde_json::Map<String, serde_json::Value> {
        let mut told = serde_json::Map::from_iter([
            ("name".to_owned(), self.name.as_str().into()),
            ("metadata".to_owned(), self.metadata.clone().into()),
        ]);
        if let Some(icon) = &self.icon {
            told.insert("icon".to_owned(), icon.as_str().into());
        }
        told
    }
}

/// A user store where people may sign in.
#[derive(Clone, Debug)]
pub struct OfferedStore {
    /// The instance.
    pub id: Uuid,
    /// Its subscription.
    pub subscription: Uuid,
    /// Whether somebody who signs in for the first time becomes a platform user.
    pub creates_platform_users: bool,
    /// The MFA instances that it asks for, whether they can be used or not.
    pub factors: Vec<Uuid>,
    /// Its options.
    pub options: Arc<Options<UserStoreOption>>,
    /// What pages tell of it.
    pub about: About,
}

/// An external identity provider where people may sign in.
#[derive(Clone, Debug)]
pub struct OfferedProvider {
    /// The instance.
    pub id: Uuid,
    /// Its kind.
    pub kind: ProviderKind,
    /// Its subscription.
    pub subscription: Uuid,
    /// Whether somebody who signs in for the first time becomes a platform user.
    pub creates_platform_users: bool,
    /// Whether a second factor there, and what it says of addresses, counts here (`treatMfaFactorClaimsAsConfirmed`).
    pub is_believed: bool,
    /// The MFA instances that it asks for, whether they can be used or not.
    pub factors: Vec<Uuid>,
    /// What pages tell of it.
    pub about: About,
}

/// An instance where people may sign in.
#[derive(Clone, Copy, Debug)]
pub enum Offered<'a> {
    /// A user store.
    Store(&'a OfferedStore),
    /// An external identity provider.
    Provider(&'a OfferedProvider),
}

impl<'a> Offered<'a> {
    /// The MFA instances that it asks for, whether they can be used or not.
    pub fn factors(self) -> &'a [Uuid] {
        match self {
            Self::Store(store) => &store.factors,
            Self::Provider(provider) => &provider.factors,
        }
    }

    /// What pages tell of it.
    pub const fn about(self) -> &'a About {
        match self {
            Self::Store(store) => &store.about,
            Self::Provider(provider) => &provider.about,
        }
    }

    /// The user store, if it is one.
    pub const fn store(self) -> Option<&'a OfferedStore> {
        match self {
            Self::Store(store) => Some(store),
            Self::Provider(_) => None,
        }
    }
}

impl ServingTenant {
    /// The instance of this id, if it is offered in the tenant.
    pub fn offered(&self, id: Uuid) -> Option<Offered<'_>> {
        let store = self.stores.iter().find(|store| store.id == id).map(Offered::Store);
        store.or_else(|| self.provider(id).map(Offered::Provider))
    }

    /// The external identity provider of this id, if it is offered in the tenant.
    pub fn provider(&self, id: Uuid) -> Option<&OfferedProvider> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// Offers no instance: nobody can sign in.
    fn close(&mut self) {
        self.facts.instances.clear();
        self.stores.clear();
        self.providers.clear();
    }
}

/// How a link that resets a password gets to the users of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetWay {
    /// By mail.
    Mail,
    /// By the program that the operator configured for it, if there is one.
    Program,
    /// Not at all: the store takes no writes.
    None,
}

impl OfferedStore {
    /// How a link that resets a password gets to its users.
    pub fn reset_way(&self) -> ResetWay {
        if self.options.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE) {
            ResetWay::None
        } else if self.options.sends_mail() {
            ResetWay::Mail
        } else {
            ResetWay::Program
        }
    }
}

impl Application {
    /// Whether people sign in to the platform itself by it: it is the console, or has one of the platform's resources.
    pub fn is_platform(&self) -> bool {
        self.id == CONSOLE || self.resources.iter().any(|key| PLATFORM.contains(&key.as_str()))
    }

    /// The tenants as the state machine sees them; at a tenant's issuer that one alone.
    pub fn tenant_facts(&self, issuing: Option<Uuid>) -> Vec<TenantFacts> {
        let served = self.tenants.iter().filter(|tenant| issuing.is_none_or(|id| id == tenant.facts.id));
        served.map(|tenant| tenant.facts.clone()).collect()
    }

    /// The tenant of this id, where the issuer that was asked is the installation's or its own.
    pub fn serving(&self, id: Uuid, issuing: Option<Uuid>) -> Option<&ServingTenant> {
        self.tenant(id).filter(|_| issuing.is_none_or(|issuing| issuing == id))
    }

    /// The instance of this id or name.
    pub fn instance(&self, named: &str) -> Option<Uuid> {
        let (id, name) = (Uuid::try_parse(named).ok(), fold(named));
        let named = |tenant: &ServingTenant| {
            let stores = tenant.stores.iter().map(|store| (store.id, fold(&store.about.name)));
            let providers = tenant.providers.iter().map(|provider| (provider.id, fold(&provider.about.name)));
            stores.chain(providers).collect::<Vec<_>>()
        };
        let mut instances = self.tenants.iter().flat_map(named);
        instances.find(|(one, its)| Some(*one) == id || *its == name).map(|(one, _)| one)
    }

    /// Whether its authorization requests need PKCE, where it signs people in at these tenants.
    pub fn needs_pkce<'a>(&self, mut tenants: impl Iterator<Item = &'a ServingTenant>) -> bool {
        match self.pkce {
            PkceMode::AsTenant => tenants.any(|tenant| tenant.options.get(TenantOption::PKCE_REQUIRED)),
            PkceMode::Required => true,
            PkceMode::Optional => false,
        }
    }

    /// Refuses what the client app is set to get for people and this release does not serve.
    ///
    /// # Errors
    /// `unauthorized_client`
    pub fn check_served(&self) -> Result<(), Refusal> {
        [Use::Person, Use::AccessToken].into_iter().try_for_each(|used_at| check_use(&self.unserved, used_at))
    }

    /// The tenants with a range that holds the address.
    pub fn in_range(&self, address: &str) -> Vec<Uuid> {
        let Ok(address) = address.parse::<IpAddr>().map(|address| address.to_canonical()) else {
            return Vec::new();
        };
        let holds = |(lower, upper): &(IpAddr, IpAddr)| {
            lower.is_ipv4() == address.is_ipv4() && (*lower..=*upper).contains(&address)
        };
        let tenants = self.tenants.iter().filter(|tenant| tenant.ranges.iter().any(holds));
        tenants.map(|tenant| tenant.facts.id).collect()
    }

    /// Whether what is granted includes a refresh token. Without `offline_access` it needs a session that it ends with.
    pub fn refreshes(&self, granted: &Granted) -> bool {
        granted.has(OFFLINE_ACCESS) || (self.refreshes_in_session && granted.session.is_some())
    }

    /// The part of a scope that the client app may be granted.
    ///
    /// # Errors
    /// `invalid_scope`
    pub fn grantable(&self, asked: Option<&Scope>) -> Result<Scope, Refusal> {
        with_facts(self, |facts| chancery_oauth::grantable_scope(asked, facts))
    }

    /// Whether the client app may be granted this word of a scope now.
    pub fn may_have(&self, word: &str) -> bool {
        with_facts(self, |facts| chancery_oauth::may_have(word, facts))
    }

    /// The tenant of this id.
    pub fn tenant(&self, id: Uuid) -> Option<&ServingTenant> {
        self.tenants.iter().find(|tenant| tenant.facts.id == id)
    }
}

/// The facts by which an authorization request is judged.
pub fn with_facts<T>(application: &Application, judge: impl FnOnce(&SignInFacts<'_>) -> T) -> T {
    let scopes: Vec<&str> = application.scopes.iter().map(|scope| scope.key.as_str()).collect();
    let uris: Vec<&str> = application.login_uris.iter().map(String::as_str).collect();
    let client = ClientFacts {
        is_public: application.is_public,
        is_native_application: application.is_native,
        allowed_response_types: &application.allowed_response_types,
        security_profile: application.security_profile,
        redirect_uris: &uris,
        ..ClientFacts::default()
    };
    judge(&SignInFacts {
        client,
        allow_user_login: application.allow_user_login,
        scope_filter_enabled: application.scope_filter_enabled,
        has_groups: application.includes_groups,
        scopes: &scopes,
    })
}

/// The profile of this name; one that is not known is the strictest.
fn security_profile(name: &str) -> SecurityProfile {
    match name {
        "None" => SecurityProfile::None,
        "Fapi1Advanced" => SecurityProfile::Fapi1Advanced,
        "Fapi2SecurityProfile" => SecurityProfile::Fapi2SecurityProfile,
        _ => SecurityProfile::Fapi2MessageSigning,
    }
}

/// Client apps, cached until the security epoch advances.
pub struct Applications(Cache<Uuid, Arc<Application>>);

impl Default for Applications {
    fn default() -> Self {
        Self(Cache::new(CACHED))
    }
}

impl Applications {
    /// The client app of this id; `None` where there is none, or it is not enabled.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn find(&self, store: &Store, id: Uuid) -> Result<Option<Arc<Application>>, Error> {
        Ok(self.find_any(store, id).await?.filter(|found| found.enabled))
    }

    /// The client app of this id, whether it is enabled or not.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn find_any(&self, store: &Store, id: Uuid) -> Result<Option<Arc<Application>>, Error> {
        if let Some(known) = self.0.get(&id)
            && store.epoch().await? == known.epoch
        {
            return Ok(Some(known));
        }
        let found = store.run("FindApplication", Mode::Quick, None, move |tx| load::load(tx, id)).await?;
        let Some(found) = found else { return Ok(None) };
        let found = Arc::new(found);
        self.0.insert(id, Arc::clone(&found));
        Ok(Some(found))
    }
}
