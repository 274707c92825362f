//! Reads the data of a client app that a sign-in needs, in one exchange with the database.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, LazyLock},
};

use chancery_flow::{InstanceFacts, InstanceKind, TenantFacts};
use chancery_management::custom_asset::{content_path, image_types};
use chancery_management::idp_instance::HAS_CONFIGURATION_ERROR;
use chancery_oauth::{ClientSettings, Encryption, UnsupportedSetting, unsupported_settings};
use chancery_record::Value;
use chancery_resource::settings::{Options, Owner};
use chancery_store::{EPOCH, Error, Row, Tx};
use uuid::Uuid;

use super::{
    About, Application, ConsentMode, OfferedFactor, OfferedProvider, OfferedStore, OwnScope, PkceMode,
    ProviderKind, ServingTenant, security_profile,
};

const ABOUT: &str = "SELECT a.id, a.rid, a.subscription_id, a.name, a.enabled, a.allow_user_login, a.is_public, \
    a.is_native_application, a.is_restricted, a.allow_cross_subscription, a.scope_filter_enabled, \
    a.logout_consent, a.access_grant_consent, a.allowed_response_types, a.security_profile, \
    a.resource_filter_enabled, a.include_groups_claims, a.subject_type, a.client_uri, a.logo_uri, \
    a.allow_device_authorization_grant, a.pkce, a.id_token_claims, \
    a.access_token_encryption_enabled_override, a.id_token_encrypted_response_alg, \
    a.userinfo_encrypted_response_alg, a.require_pushed_authorization_requests, a.refresh_tokens, \
    EXISTS (SELECT 1 FROM client_app_mfa_instance m WHERE m.client_app_rid = a.rid) \
    FROM client_app a JOIN subscription y ON y.id = a.subscription_id AND y.status = 'Active' WHERE a.id = ?1";
const URIS: &str = "SELECT uri, redirect_uri_type FROM client_app_redirect_uri WHERE client_app_id = ?1";
const SCOPES: &str =
    "SELECT key, name, description FROM client_app_scope WHERE client_app_id = ?1 ORDER BY rid";
const RESOURCES: &str = "SELECT key FROM client_app_resource WHERE client_app_id = ?1 ORDER BY rid";
const METADATA: &str = "SELECT m.key, m.value FROM client_app a JOIN client_app_metadata m ON m.client_app_rid = a.rid \
    WHERE a.id = ?1";
const TENANTS: &str = "SELECT t.id, t.name, t.subscription_id FROM client_app a JOIN tenant_client_app m ON m.client_app_rid = a.rid \
    JOIN tenant t ON t.rid = m.tenant_rid JOIN subscription y ON y.id = t.subscription_id \
    WHERE a.id = ?1 AND t.is_active AND y.status = 'Active' \
    AND (t.subscription_id = a.subscription_id OR a.allow_cross_subscription) ORDER BY t.name_key, t.id";
/// User stores and external providers, each with the location of its picture. A provider without one of its mandatory options is not
/// usable.
static INSTANCES: LazyLock<String> = LazyLock::new(|| {
    let images = image_types().map(|kind| format!("'{kind}'")).collect::<Vec<_>>().join(", ");
    format!(
        "SELECT t.id, i.id, i.is_hidden, i.subscription_id, i.auto_create_platform_user, \
    i.name, i.store_name_key IS NOT NULL, i.idp_type, i.treat_mfa_factor_claims_as_confirmed, \
    (SELECT c.location FROM custom_asset c WHERE c.location = i.icon AND c.mimetype IN \
    ({images})) FROM client_app a JOIN idp_instance_client_app m ON m.client_app_rid = a.rid \
    JOIN idp_instance i ON i.rid = m.idp_instance_rid JOIN idp_type y ON y.id = i.idp_type_id \
    JOIN tenant_idp_instance n ON n.idp_instance_rid = i.rid JOIN tenant t ON t.rid = n.tenant_rid \
    WHERE a.id = ?1 AND i.is_active AND y.is_active AND NOT {HAS_CONFIGURATION_ERROR} ORDER BY i.position, i.name_key, i.id"
    )
});
const OPTIONS: &str = "SELECT t.id, o.name, o.value, o.has_configuration_error FROM client_app a \
    JOIN tenant_client_app m ON m.client_app_rid = a.rid JOIN tenant t ON t.rid = m.tenant_rid \
    JOIN option_value o ON o.apply_to_tenant_id = t.id WHERE a.id = ?1";
const STORE_OPTIONS: &str = "SELECT i.id, o.name, o.value FROM client_app a \
    JOIN idp_instance_client_app m ON m.client_app_rid = a.rid JOIN idp_instance i ON i.rid = m.idp_instance_rid \
    JOIN option_value o ON o.apply_to_idp_instance_id = i.id WHERE a.id = ?1 AND i.store_name_key IS NOT NULL";
const INSTANCE_METADATA: &str = "SELECT i.id, e.key, e.value FROM client_app a \
    JOIN idp_instance_client_app m ON m.client_app_rid = a.rid JOIN idp_instance i ON i.rid = m.idp_instance_rid \
    JOIN idp_instance_metadata e ON e.idp_instance_rid = i.rid WHERE a.id = ?1";
/// The usable MFA instances of the tenants, each with whether the client app requires it.
const FACTORS: &str = "SELECT t.id, f.id, f.idp_type, \
    EXISTS (SELECT 1 FROM client_app_mfa_instance c WHERE c.client_app_rid = a.rid AND c.mfa_instance_rid = f.rid) \
    FROM client_app a JOIN tenant_client_app m ON m.client_app_rid = a.rid JOIN tenant t ON t.rid = m.tenant_rid \
    JOIN tenant_mfa_instance n ON n.tenant_rid = t.rid JOIN mfa_instance f ON f.rid = n.mfa_instance_rid \
    JOIN idp_type y ON y.id = f.idp_type_id WHERE a.id = ?1 AND f.is_active AND y.is_active \
    AND NOT EXISTS (SELECT 1 FROM option_value o WHERE o.apply_to_mfa_instance_id = f.id \
    AND o.has_configuration_error) ORDER BY f.position, f.name_key, f.id";
const FACTOR_OPTIONS: &str = "SELECT DISTINCT f.id, o.name, o.value FROM client_app a \
    JOIN tenant_client_app m ON m.client_app_rid = a.rid \
    JOIN tenant_mfa_instance n ON n.tenant_rid = m.tenant_rid JOIN mfa_instance f ON f.rid = n.mfa_instance_rid \
    JOIN option_value o ON o.apply_to_mfa_instance_id = f.id WHERE a.id = ?1";
const RANGES: &str = "SELECT r.tenant_id, r.lower, r.upper FROM client_app a \
    JOIN tenant_client_app m ON m.client_app_rid = a.rid JOIN tenant t ON t.rid = m.tenant_rid \
    JOIN ip_address_range r ON r.tenant_id = t.id WHERE a.id = ?1 ORDER BY r.rid";
/// The tenants with questionnaire items.
const TENANTS_WITH_QUESTIONNAIRE: &str = "SELECT t.id FROM client_app a JOIN tenant_client_app m ON m.client_app_rid = a.rid \
    JOIN tenant t ON t.rid = m.tenant_rid \
    WHERE a.id = ?1 AND EXISTS (SELECT 1 FROM user_questionnaire_item q WHERE q.tenant_id = t.id)";
/// Which instances require which of them.
const FACTORS_OF_STORES: &str = "SELECT i.id, f.id FROM client_app a \
    JOIN idp_instance_client_app m ON m.client_app_rid = a.rid JOIN idp_instance i ON i.rid = m.idp_instance_rid \
    JOIN idp_instance_mfa_instance l ON l.idp_instance_rid = i.rid JOIN mfa_instance f ON f.rid = l.mfa_instance_rid \
    WHERE a.id = ?1";

type Values = HashMap<Uuid, HashMap<String, String>>;

/// The client app of this id, whether it is enabled or not.
pub fn load(tx: &mut Tx<'_>, id: Uuid) -> Result<Option<Application>, Error> {
    let key = [Value::Id(id)];
    // the epoch is read first, so that what follows is no older
    let texts = [
        EPOCH,
        ABOUT,
        URIS,
        SCOPES,
        TENANTS,
        INSTANCES.as_str(),
        RESOURCES,
        FACTORS,
        FACTORS_OF_STORES,
        METADATA,
        OPTIONS,
        STORE_OPTIONS,
        FACTOR_OPTIONS,
        RANGES,
        TENANTS_WITH_QUESTIONNAIRE,
        INSTANCE_METADATA,
    ];
    let statements = texts.map(|text| (text, if text == EPOCH { &key[..0] } else { &key[..] }));
    let (mut epoch, mut application, mut values, mut wrong) = (0, None, Values::new(), HashSet::new());
    tx.query_all(&statements, &mut |index, row| {
        match (index, &mut application) {
            (0, _) => epoch = row.int(0)?,
            (1, application) => *application = Some(read_application(row)?),
            (_, None) => {}
            (2, Some(application)) => {
                let uris = if row.text(1)? == "Login" {
                    &mut application.login_uris
                } else {
                    &mut application.logout_uris
                };
                uris.push(row.text(0)?.to_owned());
            }
            (3, Some(application)) => application.scopes.push(OwnScope {
                key: row.text(0)?.to_owned(),
                name: row.text(1)?.to_owned(),
                description: row.optional_text(2)?,
            }),
            (4, Some(application)) => application.tenants.push(ServingTenant {
                facts: TenantFacts { id: row.id(0)?, instances: Vec::new() },
                name: row.text(1)?.to_owned(),
                subscription: row.id(2)?,
                stores: Vec::new(),
                providers: Vec::new(),
                factors: Vec::new(),
                options: unset(Owner::Tenant),
                ranges: Vec::new(),
                has_questionnaire: false,
            }),
            (5, Some(application)) => add_instance(application, row)?,
            (6, Some(application)) => application.resources.push(row.text(0)?.to_owned()),
            (7, Some(application)) => add_factor(application, row)?,
            (8, Some(application)) => {
                add_required_factor(application, row.id(0)?, row.id(1)?);
            }
            (9, Some(application)) => {
                let value = row.optional_text(1)?.unwrap_or_default();
                drop(application.metadata.insert(row.text(0)?.to_owned(), value.into()));
            }
            (13, Some(application)) => add_range(application, row)?,
            (14, Some(application)) => {
                let id = row.id(0)?;
                if let Some(tenant) = application.tenants.iter_mut().find(|tenant| tenant.facts.id == id) {
                    tenant.has_questionnaire = true;
                }
            }
            (15, Some(application)) => {
                let (instance, key) = (row.id(0)?, row.text(1)?.to_owned());
                let value = row.optional_text(2)?.unwrap_or_default();
                add_entry(application, instance, &key, &value);
            }
            (_, Some(_)) => {
                if index == 10 && row.bool(3)? {
                    wrong.insert((row.id(0)?, row.text(1)?.to_owned()));
                }
                let own = values.entry(row.id(0)?).or_default();
                own.insert(row.text(1)?.to_owned(), row.text(2)?.to_owned());
            }
        }
        Ok(())
    })?;
    if let Some(application) = &mut application {
        set_options(application, &values);
        close_misconfigured(application, &wrong);
        application.epoch = epoch;
    }
    Ok(application)
}

fn unset<F>(owner: Owner) -> Arc<Options<F>> {
    Options::of(owner, HashMap::new()).into()
}

/// Sets the options of tenants, stores and MFA instances.
fn set_options(application: &mut Application, values: &Values) {
    for tenant in &mut application.tenants {
        set(&mut tenant.options, Owner::Tenant, values.get(&tenant.facts.id));
        for store in &mut tenant.stores {
            set(&mut store.options, Owner::UserStore, values.get(&store.id));
        }
        for factor in &mut tenant.factors {
            set(&mut factor.options, OfferedFactor::owner_of(factor.kind), values.get(&factor.id));
        }
    }
}

fn set<F>(options: &mut Arc<Options<F>>, owner: Owner, own: Option<&HashMap<String, String>>) {
    if let Some(own) = own {
        *options = Options::of(owner, own.clone()).into();
    }
}

/// Closes a tenant if its options contradict each other or one of them has a wrong value. The platform itself stays
/// open, so that an administrator can correct them; there a wrong option counts as its strictest value.
fn close_misconfigured(application: &mut Application, wrong: &HashSet<(Uuid, String)>) {
    let is_platform = application.is_platform();
    for tenant in &mut application.tenants {
        if is_platform {
            tenant.options = Options::clone(&tenant.options).strict().into();
            continue;
        }
        let is_wrong = |name: &&str| wrong.contains(&(tenant.facts.id, (*name).to_owned()));
        let limits = Owner::Tenant.entries().filter(|entry| entry.is_limit()).map(|entry| entry.name);
        let wrong_option = tenant.options.contradiction().into_iter().chain(limits).find(is_wrong);
        if let Some(name) = wrong_option {
            tracing::warn!(tenant = %tenant.facts.id, option = name, "an option is wrong or contradicts another: nobody can sign in at the tenant");
            tenant.close();
        }
    }
}

/// The unsupported settings that concern sign-ins.
fn read_unsupported_settings(row: &Row<'_>) -> Result<Vec<UnsupportedSetting>, Error> {
    let (id_token, userinfo) = (row.optional_text(24)?, row.optional_text(25)?);
    Ok(unsupported_settings(&ClientSettings {
        is_pairwise: row.text(17)? == "Pairwise",
        encrypts_access_tokens: !row.is_null(23)? && row.bool(23)?,
        id_token_encryption: Encryption { alg: id_token.as_deref(), enc: None },
        userinfo_encryption: Encryption { alg: userinfo.as_deref(), enc: None },
        require_pushed_authorization_requests: row.bool(26)?,
        security_profile: security_profile(row.text(14)?),
        ..ClientSettings::default()
    }))
}

fn add_range(application: &mut Application, row: &Row<'_>) -> Result<(), Error> {
    let id = row.id(0)?;
    let ends = (row.text(1)?.parse(), row.text(2)?.parse());
    if let (Some(tenant), (Ok(lower), Ok(upper))) =
        (application.tenants.iter_mut().find(|one| one.facts.id == id), ends)
    {
        tenant.ranges.push((lower, upper));
    }
    Ok(())
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
        security_profile: security_profile(row.text(14)?),
        filters_resources: row.bool(15)?,
        includes_groups: row.bool(16)?,
        client_uri: row.optional_text(18)?,
        logo_uri: row.optional_text(19)?,
        allows_devices: row.bool(20)?,
        pkce: match row.text(21)? {
            "AsTenant" => PkceMode::AsTenant,
            "Optional" => PkceMode::Optional,
            _ => PkceMode::Required,
        },
        scope_claims_in_id_token: row.text(22)? == "Scopes",
        unsupported_settings: read_unsupported_settings(row)?,
        requires_second_factor: row.bool(28)?,
        refreshes_in_session: row.text(27)? == "Session",
        login_uris: Vec::new(),
        logout_uris: Vec::new(),
        scopes: Vec::new(),
        resources: Vec::new(),
        metadata: serde_json::Map::new(),
        tenants: Vec::new(),
        rules: Arc::default(),
        epoch: 0,
    })
}

fn add_instance(application: &mut Application, row: &Row<'_>) -> Result<(), Error> {
    let (tenant, id) = (row.id(0)?, row.id(1)?);
    let Some(tenant) = application.tenants.iter_mut().find(|one| one.facts.id == tenant) else {
        return Ok(());
    };
    let (subscription, creates_platform_users) = (row.id(3)?, row.bool(4)?);
    let is_trusted = row.bool(8)?;
    let about = About {
        name: row.text(5)?.to_owned(),
        icon: row.optional_text(9)?.map(|location| content_path(&location)),
        metadata: serde_json::Map::new(),
    };
    let kind = if row.bool(6)? {
        let options = unset(Owner::UserStore);
        tenant.stores.push(OfferedStore {
            id,
            subscription,
            creates_platform_users,
            factors: Vec::new(),
            options,
            about,
        });
        InstanceKind::Store
    } else if let Some(kind) = ProviderKind::named(row.text(7)?) {
        tenant.providers.push(OfferedProvider {
            id,
            kind,
            subscription,
            creates_platform_users,
            is_trusted,
            factors: Vec::new(),
            about,
        });
        InstanceKind::External { believed: is_trusted }
    } else {
        return Ok(());
    };
    tenant.facts.instances.push(InstanceFacts { id, is_hidden: row.bool(2)?, kind });
    Ok(())
}

/// Adds a metadata entry of an instance.
fn add_entry(application: &mut Application, instance: Uuid, key: &str, value: &str) {
    for tenant in &mut application.tenants {
        let stores = tenant.stores.iter_mut().map(|store| (store.id, &mut store.about.metadata));
        let providers =
            tenant.providers.iter_mut().map(|provider| (provider.id, &mut provider.about.metadata));
        for (_, metadata) in stores.chain(providers).filter(|(id, _)| *id == instance) {
            metadata.insert(key.to_owned(), value.into());
        }
    }
}

/// Adds an MFA instance that an instance requires.
fn add_required_factor(application: &mut Application, instance: Uuid, factor: Uuid) {
    for tenant in &mut application.tenants {
        let stores = tenant.stores.iter_mut().map(|store| (store.id, &mut store.factors));
        let providers = tenant.providers.iter_mut().map(|provider| (provider.id, &mut provider.factors));
        let requiring = stores.chain(providers).filter(|(id, _)| *id == instance);
        requiring.for_each(|(_, factors)| factors.push(factor));
    }
}

fn add_factor(application: &mut Application, row: &Row<'_>) -> Result<(), Error> {
    let (tenant, id) = (row.id(0)?, row.id(1)?);
    let owner = row.optional_text(2)?.and_then(|name| Owner::of_type(&name));
    let Some(kind) = owner.and_then(OfferedFactor::kind_of) else { return Ok(()) };
    if let Some(tenant) = application.tenants.iter_mut().find(|one| one.facts.id == tenant) {
        let is_of_application = row.bool(3)?;
        let options = unset(OfferedFactor::owner_of(kind));
        tenant.factors.push(OfferedFactor { id, kind, is_of_application, options });
    }
    Ok(())
}
