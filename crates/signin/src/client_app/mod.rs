//! The data of a client app that a sign-in needs. It is cached until the security epoch advances.

pub mod acr;
pub mod audience;
pub mod claim_rules;
pub mod console_path;
pub mod load;
mod offered_factor;
mod rows;

use std::{net::IpAddr, sync::Arc};

pub use chancery_federation::ProviderKind;
use chancery_flow::TenantFacts;
use chancery_oauth::{
    ClientSettings, ProtocolError, Scope, SecurityProfile, SignInFacts, UnsupportedSetting, Use, check_use,
};
use chancery_record::fold;
use chancery_resource::{
    CONSOLE, PLATFORM,
    settings::{Options, TenantOption, UserStoreOption},
};
use chancery_store::{Error, Mode, Store, selectable};
use quick_cache::sync::Cache;
use uuid::Uuid;

use self::claim_rules::ClaimRuleCache;
pub use load::load;
pub use offered_factor::OfferedFactor;

/// Why a client app gets no tokens.
pub const NOT_SERVING: &str = "The client app is not enabled, or its subscription is not active.";
/// The number of client apps cached.
const CACHED: usize = 10_000;

/// When a person's consent is required (`accessGrantConsent`).
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
    /// By the tenant's option PkceRequired.
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
    /// Whether a sign-out needs no confirmation (`logoutConsent`).
    pub signs_out_silently: bool,
    /// `accessGrantConsent`
    pub consent: ConsentMode,
    /// `allowedResponseTypes`
    pub allowed_response_types: String,
    /// `pkce`
    pub pkce: PkceMode,
    /// Whether ID tokens have the claims of the granted scopes (`idTokenClaims`).
    pub scope_claims_in_id_token: bool,
    /// Whether it gets a refresh token with every code (`refreshTokens` is Session).
    pub refreshes_in_session: bool,
    /// `securityProfile`
    pub security_profile: SecurityProfile,
    /// Its unsupported settings.
    pub unsupported_settings: Vec<UnsupportedSetting>,
    /// Whether a second factor is required.
    pub requires_second_factor: bool,
    /// The redirect URIs of type Login.
    pub login_uris: Vec<String>,
    /// The redirect URIs of type Logout.
    pub logout_uris: Vec<String>,
    /// Its own scopes.
    pub scopes: Vec<OwnScope>,
    /// The keys of its own resources.
    pub resources: Vec<String>,
    /// Metadata for views, set by administrators.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// The tenants that it serves.
    pub tenants: Vec<ServingTenant>,
    /// Cache of the claim rules in force.
    pub rules: Arc<ClaimRuleCache>,
    /// The security epoch at which it was read.
    pub epoch: i64,
}

selectable! {
    /// A scope of a client app.
    #[derive(Clone, Debug)]
    pub struct OwnScope from "FROM client_app_scope WHERE client_app_id = ?1 ORDER BY rid" {
        /// Its name in requests.
        pub key: String = "key",
        /// Its display name.
        pub name: String = "name",
        /// Its description.
        pub description: Option<String> = "description",
    }
}

/// A tenant in which a client app serves.
#[derive(Clone, Debug)]
pub struct ServingTenant {
    /// The tenant and the instances that it has in common with the client app.
    pub facts: TenantFacts,
    /// Its name.
    pub name: String,
    /// Its subscription.
    pub subscription: Uuid,
    /// The user stores among the instances, in the order of the look-up of a name.
    pub stores: Vec<OfferedStore>,
    /// The external identity providers among them, in the order in which they are offered.
    pub providers: Vec<OfferedProvider>,
    /// Its usable second factors, in order.
    pub factors: Vec<OfferedFactor>,
    /// Its options.
    pub options: Arc<Options<TenantOption>>,
    /// The address ranges that select the tenant: the first and the last address of each.
    pub ranges: Vec<(IpAddr, IpAddr)>,
    /// Whether it has questionnaire items.
    pub has_questionnaire: bool,
}

/// The description of an instance for views.
#[derive(Clone, Debug)]
pub struct About {
    /// Its name.
    pub name: String,
    /// The path of its picture at this server, where it has one.
    pub icon: Option<String>,
    /// Metadata for views, set by administrators.
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

impl About {
    /// The context for views.
    pub fn to_view(&self) -> serde_json::Map<String, serde_json::Value> {
        let mut view = serde_json::Map::from_iter([
            ("name".to_owned(), self.name.as_str().into()),
            ("metadata".to_owned(), self.metadata.clone().into()),
        ]);
        if let Some(icon) = &self.icon {
            view.insert("icon".to_owned(), icon.as_str().into());
        }
        view
    }
}

/// A user store where people may sign in.
#[derive(Clone, Debug)]
pub struct OfferedStore {
    /// The instance.
    pub id: Uuid,
    /// Its subscription.
    pub subscription: Uuid,
    /// Whether a first sign-in creates a platform user.
    pub creates_platform_users: bool,
    /// The MFA instances that it requires, whether they are usable or not.
    pub factors: Vec<Uuid>,
    /// Its options.
    pub options: Arc<Options<UserStoreOption>>,
    /// The description for views.
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
    /// Whether a first sign-in creates a platform user.
    pub creates_platform_users: bool,
    /// Whether its second factors and its statements about addresses are accepted
    /// (`treatMfaFactorClaimsAsConfirmed`).
    pub is_trusted: bool,
    /// The MFA instances that it requires, whether they are usable or not.
    pub factors: Vec<Uuid>,
    /// The description for views.
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
    /// The MFA instances that it requires, whether they are usable or not.
    pub fn factors(self) -> &'a [Uuid] {
        match self {
            Self::Store(store) => &store.factors,
            Self::Provider(provider) => &provider.factors,
        }
    }

    /// The description for views.
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
    /// The instance of this id, if the tenant offers it.
    pub fn offered(&self, id: Uuid) -> Option<Offered<'_>> {
        let store = self.stores.iter().find(|store| store.id == id).map(Offered::Store);
        store.or_else(|| self.provider(id).map(Offered::Provider))
    }

    /// The external identity provider of this id, if the tenant offers it.
    pub fn provider(&self, id: Uuid) -> Option<&OfferedProvider> {
        self.providers.iter().find(|provider| provider.id == id)
    }

    /// Removes all instances, so that sign-ins are impossible.
    fn close(&mut self) {
        self.facts.instances.clear();
        self.stores.clear();
        self.providers.clear();
    }
}

/// How a store's users get a link that resets the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetDelivery {
    /// By mail.
    Mail,
    /// By the program that the operator configured for it, if there is one.
    Program,
    /// Not at all: the store is read-only.
    None,
}

impl OfferedStore {
    /// How its users get a link that resets the password.
    pub fn reset_delivery(&self) -> ResetDelivery {
        if self.options.get(UserStoreOption::IS_DATABASE_READ_ONLY_MODE) {
            ResetDelivery::None
        } else if self.options.sends_mail() {
            ResetDelivery::Mail
        } else {
            ResetDelivery::Program
        }
    }
}

impl Application {
    /// Whether it signs people in to the platform itself: it is the console, or has one of the platform's resources.
    pub fn is_platform(&self) -> bool {
        self.id == CONSOLE || self.resources.iter().any(|key| PLATFORM.contains(&key.as_str()))
    }

    /// The tenants as input of the state machine; for a tenant's issuer only that tenant.
    pub fn tenant_facts(&self, issuing: Option<Uuid>) -> Vec<TenantFacts> {
        let served = self.tenants.iter().filter(|tenant| issuing.is_none_or(|id| id == tenant.facts.id));
        served.map(|tenant| tenant.facts.clone()).collect()
    }

    /// The tenant of this id, if the requested issuer is the installation's or the tenant's own.
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

    /// Whether its authorization requests for these tenants need PKCE.
    pub fn needs_pkce<'a>(&self, mut tenants: impl Iterator<Item = &'a ServingTenant>) -> bool {
        match self.pkce {
            PkceMode::AsTenant => tenants.any(|tenant| tenant.options.get(TenantOption::PKCE_REQUIRED)),
            PkceMode::Required => true,
            PkceMode::Optional => false,
        }
    }

    /// Refuses settings of the client app for people that this release does not support.
    ///
    /// # Errors
    /// `unauthorized_client`
    pub fn check_served(&self) -> Result<(), ProtocolError> {
        [Use::Person, Use::AccessToken]
            .into_iter()
            .try_for_each(|used_at| check_use(&self.unsupported_settings, used_at))
    }

    /// The tenants with a range that contains the address.
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

    /// The part of a scope that may be granted to the client app.
    ///
    /// # Errors
    /// `invalid_scope`
    pub fn grantable(&self, requested: Option<&Scope>) -> Result<Scope, ProtocolError> {
        with_facts(self, |facts| chancery_oauth::grantable_scope(requested, facts))
    }

    /// Whether this scope may be granted to the client app now.
    pub fn may_have(&self, word: &str) -> bool {
        with_facts(self, |facts| chancery_oauth::is_grantable(word, facts))
    }

    /// Whether an instance is an external identity provider of one of the client app's tenants.
    pub fn is_external(&self, tenant: Uuid, instance: Uuid) -> bool {
        self.tenant(tenant).is_some_and(|tenant| tenant.provider(instance).is_some())
    }

    /// The tenant of this id.
    pub fn tenant(&self, id: Uuid) -> Option<&ServingTenant> {
        self.tenants.iter().find(|tenant| tenant.facts.id == id)
    }
}

/// Runs a check with the facts for the validation of an authorization request.
pub fn with_facts<T>(application: &Application, check: impl FnOnce(&SignInFacts<'_>) -> T) -> T {
    let scopes: Vec<&str> = application.scopes.iter().map(|scope| scope.key.as_str()).collect();
    let uris: Vec<&str> = application.login_uris.iter().map(String::as_str).collect();
    let client = ClientSettings {
        is_public: application.is_public,
        is_native_application: application.is_native,
        allowed_response_types: &application.allowed_response_types,
        security_profile: application.security_profile,
        redirect_uris: &uris,
        ..ClientSettings::default()
    };
    check(&SignInFacts {
        client,
        allow_user_login: application.allow_user_login,
        scope_filter_enabled: application.scope_filter_enabled,
        has_groups: application.includes_groups,
        scopes: &scopes,
    })
}

/// The profile of this name; an unknown name is the strictest profile.
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
    /// The client app of this id; `None` if it does not exist or is not enabled.
    pub async fn find(&self, store: &Store, id: Uuid) -> Result<Option<Arc<Application>>, Error> {
        Ok(self.find_any(store, id).await?.filter(|application| application.enabled))
    }

    /// The client app of this id, as of the epoch that this request has read, or of now; `None` if it does not exist or is not
    /// enabled.
    pub async fn find_at(
        &self,
        store: &Store,
        id: Uuid,
        epoch: i64,
    ) -> Result<Option<Arc<Application>>, Error> {
        match self.0.get(&id).filter(|known| known.epoch == epoch) {
            Some(known) => Ok(Some(known).filter(|known| known.enabled)),
            None => self.find(store, id).await,
        }
    }

    /// The client app of this id, whether it is enabled or not.
    pub async fn find_any(&self, store: &Store, id: Uuid) -> Result<Option<Arc<Application>>, Error> {
        if let Some(known) = self.0.get(&id)
            && store.epoch().await? == known.epoch
        {
            return Ok(Some(known));
        }
        let application =
            store.run("FindApplication", Mode::Quick, None, move |tx| load::load(tx, id)).await?;
        let Some(application) = application else { return Ok(None) };
        let application = Arc::new(application);
        self.0.insert(id, Arc::clone(&application));
        Ok(Some(application))
    }
}
