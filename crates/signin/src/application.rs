//! What a sign-in needs to know of a client app, as administrators set it. It is cached until the security epoch
//! advances.

use std::{collections::HashMap, sync::Arc};

use chancery_flow::{InstanceFacts, InstanceKind, TenantFacts};
use chancery_oauth::{ClientFacts, Refusal, Scope, SecurityProfile, SignInFacts};
use chancery_record::{Value, fold};
use chancery_resource::settings::{Options, Owner};
use chancery_store::{EPOCH, Error, Mode, Row, Store, Tx};
use quick_cache::sync::Cache;
use uuid::Uuid;

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
    /// Whether each sector knows people by names of its own (`subjectType`).
    pub is_pairwise: bool,
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
    /// `securityProfile`
    pub security_profile: String,
    /// Whether a second factor is asked for.
    pub asks_for_second_factor: bool,
    /// The redirect URIs of type Login.
    pub login_uris: Vec<String>,
    /// The redirect URIs of type Logout.
    pub logout_uris: Vec<String>,
    /// Its own scopes.
    pub scopes: Vec<OwnScope>,
    /// Its own resources.
    pub resources: Vec<String>,
    /// The tenants in which it serves.
    pub tenants: Vec<ServingTenant>,
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
    /// The user stores among the instances, in the order in which a name is looked for.
    pub stores: Vec<OfferedStore>,
    /// Its options.
    pub options: Arc<Options>,
}

/// A user store where people may sign in.
#[derive(Clone, Debug)]
pub struct OfferedStore {
    /// The instance.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its subscription.
    pub subscription: Uuid,
    /// Whether somebody who signs in for the first time becomes a platform user.
    pub creates_platform_users: bool,
    /// Whether a second factor is asked for.
    pub asks_for_second_factor: bool,
}

impl Application {
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
        let mut stores = self.tenants.iter().flat_map(|tenant| &tenant.stores);
        stores.find(|store| Some(store.id) == id || fold(&store.name) == name).map(|store| store.id)
    }

    /// The part of a scope that the client app may be granted.
    ///
    /// # Errors
    /// `invalid_scope`
    pub fn grantable(&self, asked: Option<&Scope>) -> Result<Scope, Refusal> {
        with_facts(self, |facts| chancery_oauth::grantable_scope(asked, facts))
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
        security_profile: match application.security_profile.as_str() {
            "None" => SecurityProfile::None,
            "Fapi1Advanced" => SecurityProfile::Fapi1Advanced,
            "Fapi2SecurityProfile" => SecurityProfile::Fapi2SecurityProfile,
            _ => SecurityProfile::Fapi2MessageSigning,
        },
        redirect_uris: &uris,
        ..ClientFacts::default()
    };
    judge(&SignInFacts {
        client,
        allow_user_login: application.allow_user_login,
        scope_filter_enabled: application.scope_filter_enabled,
        scopes: &scopes,
    })
}

/// Client apps, cached until the security epoch advances.
pub struct Applications(Cache<Uuid, (Arc<Application>, i64)>);

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
        if let Some((known, epoch)) = self.0.get(&id)
            && store.epoch().await? == epoch
        {
            return Ok(Some(known));
        }
        let (found, epoch) = store.run("FindApplication", Mode::Quick, None, move |tx| load(tx, id)).await?;
        let Some(found) = found.filter(|found| found.enabled) else { return Ok(None) };
        let found = Arc::new(found);
        self.0.insert(id, (Arc::clone(&found), epoch));
        Ok(Some(found))
    }
}

const ABOUT: &str = "SELECT a.id, a.rid, a.subscription_id, a.name, a.enabled, a.allow_user_login, a.is_public, \
    a.is_native_application, a.is_restricted, a.allow_cross_subscription, a.scope_filter_enabled, \
    a.logout_consent, a.access_grant_consent, a.allowed_response_types, a.security_profile, \
    a.resource_filter_enabled, a.include_groups_claims, a.subject_type, a.client_uri, a.logo_uri, \
    a.allow_device_authorization_grant, \
    EXISTS (SELECT 1 FROM client_app_mfa_instance m WHERE m.client_app_rid = a.rid) \
    FROM client_app a JOIN subscription y ON y.id = a.subscription_id AND y.status = 'Active' WHERE a.id = ?1";
const URIS: &str = "SELECT uri, redirect_uri_type FROM client_app_redirect_uri WHERE client_app_id = ?1";
const SCOPES: &str =
    "SELECT key, name, description FROM client_app_scope WHERE client_app_id = ?1 ORDER BY rid";
const RESOURCES: &str = "SELECT key FROM client_app_resource WHERE client_app_id = ?1 ORDER BY rid";
const TENANTS: &str = "SELECT t.id, t.name FROM client_app a JOIN tenant_client_app m ON m.client_app_rid = a.rid \
    JOIN tenant t ON t.rid = m.tenant_rid JOIN subscription y ON y.id = t.subscription_id \
    WHERE a.id = ?1 AND t.is_active AND y.status = 'Active' \
    AND (t.subscription_id = a.subscription_id OR a.allow_cross_subscription) ORDER BY t.name_key, t.id";
/// User stores alone: other instances cannot be used yet.
const INSTANCES: &str = "SELECT t.id, i.id, i.is_hidden, i.subscription_id, i.auto_create_platform_user, \
    EXISTS (SELECT 1 FROM idp_instance_mfa_instance f WHERE f.idp_instance_rid = i.rid), i.name \
    FROM client_app a JOIN idp_instance_client_app m ON m.client_app_rid = a.rid \
    JOIN idp_instance i ON i.rid = m.idp_instance_rid JOIN idp_type y ON y.id = i.idp_type_id \
    JOIN tenant_idp_instance n ON n.idp_instance_rid = i.rid JOIN tenant t ON t.rid = n.tenant_rid \
    WHERE a.id = ?1 AND i.is_active AND y.is_active AND i.store_name_key IS NOT NULL \
    AND NOT EXISTS (SELECT 1 FROM option_value o WHERE o.apply_to_idp_instance_id = i.id \
    AND o.has_configuration_error) ORDER BY i.position, i.name_key, i.id";
const OPTIONS: &str = "SELECT t.id, o.name, o.value FROM client_app a \
    JOIN tenant_client_app m ON m.client_app_rid = a.rid JOIN tenant t ON t.rid = m.tenant_rid \
    JOIN option_value o ON o.apply_to_tenant_id = t.id WHERE a.id = ?1";

fn load(tx: &mut Tx<'_>, id: Uuid) -> Result<(Option<Application>, i64), Error> {
    let key = [Value::Id(id)];
    // the epoch is read first, so that what follows is no older
    let texts = [EPOCH, ABOUT, URIS, SCOPES, TENANTS, INSTANCES, RESOURCES, OPTIONS];
    let statements = texts.map(|text| (text, if text == EPOCH { &key[..0] } else { &key[..] }));
    let (mut epoch, mut found) = (0, None);
    let mut options: HashMap<Uuid, HashMap<String, String>> = HashMap::new();
    tx.query_all(&statements, &mut |index, row| {
        match (index, &mut found) {
            (0, _) => epoch = row.int(0)?,
            (1, found) => *found = Some(read_application(row)?),
            (_, None) => {}
            (2, Some(found)) => {
                let uris =
                    if row.text(1)? == "Login" { &mut found.login_uris } else { &mut found.logout_uris };
                uris.push(row.text(0)?.to_owned());
            }
            (3, Some(found)) => found.scopes.push(OwnScope {
                key: row.text(0)?.to_owned(),
                name: row.text(1)?.to_owned(),
                description: optional(row, 2)?,
            }),
            (4, Some(found)) => found.tenants.push(ServingTenant {
                facts: TenantFacts { id: row.id(0)?, instances: Vec::new() },
                name: row.text(1)?.to_owned(),
                stores: Vec::new(),
                options: Options::new(Owner::Tenant, HashMap::new()).into(),
            }),
            (5, Some(found)) => add_store(found, row)?,
            (6, Some(found)) => found.resources.push(row.text(0)?.to_owned()),
            (_, Some(_)) => {
                let own = options.entry(row.id(0)?).or_default();
                own.insert(row.text(1)?.to_owned(), row.text(2)?.to_owned());
            }
        }
        Ok(())
    })?;
    for tenant in found.iter_mut().flat_map(|found| &mut found.tenants) {
        if let Some(own) = options.remove(&tenant.facts.id) {
            tenant.options = Options::new(Owner::Tenant, own).into();
        }
    }
    Ok((found, epoch))
}

fn read_application(row: &Row<'_>) -> Result<Application, Error> {
    Ok(Application {
        id: row.id(0)?,
        rid: row.int(1)?,
        subscription: row.id(2)?,
        name: row.text(3)?.to_owned(),
        enabled: row.bool(4)?,
        allow_user_login: row.bool(5)?,
        is_public: row.bool(6)?,
        is_native: row.bool(7)?,
        is_restricted: row.bool(8)?,
        allow_cross_subscription: row.bool(9)?,
        scope_filter_enabled: row.bool(10)?,
        signs_out_silently: row.text(11)? == "Implicit",
        consent: match row.text(12)? {
            "Implicit" => ConsentMode::Implicit,
            "Explicit" => ConsentMode::Explicit,
            "Systematic" => ConsentMode::Systematic,
            _ => ConsentMode::External,
        },
        allowed_response_types: row.text(13)?.to_owned(),
        security_profile: row.text(14)?.to_owned(),
        filters_resources: row.bool(15)?,
        includes_groups: row.bool(16)?,
        is_pairwise: row.text(17)? == "Pairwise",
        client_uri: optional(row, 18)?,
        logo_uri: optional(row, 19)?,
        allows_devices: row.bool(20)?,
        asks_for_second_factor: row.bool(21)?,
        login_uris: Vec::new(),
        logout_uris: Vec::new(),
        scopes: Vec::new(),
        resources: Vec::new(),
        tenants: Vec::new(),
    })
}

fn optional(row: &Row<'_>, column: usize) -> Result<Option<String>, Error> {
    if row.is_null(column)? { Ok(None) } else { row.text(column).map(|text| Some(text.to_owned())) }
}

fn add_store(application: &mut Application, row: &Row<'_>) -> Result<(), Error> {
    let (tenant, id) = (row.id(0)?, row.id(1)?);
    let Some(tenant) = application.tenants.iter_mut().find(|one| one.facts.id == tenant) else {
        return Ok(());
    };
    tenant.facts.instances.push(InstanceFacts { id, is_hidden: row.bool(2)?, kind: InstanceKind::Store });
    tenant.stores.push(OfferedStore {
        id,
        subscription: row.id(3)?,
        creates_platform_users: row.bool(4)?,
        asks_for_second_factor: row.bool(5)?,
        name: row.text(6)?.to_owned(),
    });
    Ok(())
}
