//! Reads the data of a client app that a sign-in needs, in one exchange with the database.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use chancery_flow::{InstanceFacts, InstanceKind, TenantFacts};
use chancery_management::custom_asset::content_path;
use chancery_oauth::{ClientSettings, Encryption, UnsupportedSetting, unsupported_settings};
use chancery_record::Value;
use chancery_resource::settings::{Options, Owner};
use chancery_store::{EPOCH, Error, Tx};
use uuid::Uuid;

use super::{
    About, Application, ConsentMode, OfferedFactor, OfferedProvider, OfferedStore, OwnScope, PkceMode,
    ProviderKind, ServingTenant,
    rows::{
        AddressRange, ClientAppMetadata, ClientAppRow, FACTOR_OPTIONS, FactorOptionRow, FactorRow, INSTANCES,
        InstanceMetadata, InstanceRow, RESOURCES, RedirectUri, RequiredFactor, StoreOptionRow,
        TENANTS_WITH_QUESTIONNAIRE, TenantOptionRow, TenantRow,
    },
    security_profile,
};

type Values = HashMap<Uuid, HashMap<String, String>>;

/// The client app of this id, whether it is enabled or not.
pub fn load(tx: &mut Tx<'_>, id: Uuid) -> Result<Option<Application>, Error> {
    let key = [Value::Id(id)];
    // the epoch is read first, so that what follows is no older
    let texts = [
        EPOCH,
        ClientAppRow::SELECT,
        RedirectUri::SELECT,
        OwnScope::SELECT,
        TenantRow::SELECT,
        INSTANCES.as_str(),
        RESOURCES,
        FactorRow::SELECT,
        RequiredFactor::SELECT,
        ClientAppMetadata::SELECT,
        TenantOptionRow::SELECT,
        StoreOptionRow::SELECT,
        FACTOR_OPTIONS.as_str(),
        AddressRange::SELECT,
        TENANTS_WITH_QUESTIONNAIRE,
        InstanceMetadata::SELECT,
    ];
    let statements = texts.map(|text| (text, if text == EPOCH { &key[..0] } else { &key[..] }));
    let (mut epoch, mut application, mut values, mut wrong) = (0, None, Values::new(), HashSet::new());
    tx.query_all(&statements, &mut |index, row| {
        match (index, &mut application) {
            (0, _) => epoch = row.int(0)?,
            (1, application) => *application = Some(ClientAppRow::read(row)?.into()),
            (_, None) => {}
            (2, Some(application)) => add_uri(application, RedirectUri::read(row)?),
            (3, Some(application)) => application.scopes.push(OwnScope::read(row)?),
            (4, Some(application)) => application.tenants.push(TenantRow::read(row)?.into()),
            (5, Some(application)) => add_instance(application, &InstanceRow::read(row)?),
            (6, Some(application)) => application.resources.push(row.text(0)?.to_owned()),
            (7, Some(application)) => add_factor(application, &FactorRow::read(row)?),
            (8, Some(application)) => add_required_factor(application, &RequiredFactor::read(row)?),
            (9, Some(application)) => {
                let ClientAppMetadata { key, value } = ClientAppMetadata::read(row)?;
                application.metadata.insert(key, value.unwrap_or_default().into());
            }
            (10, Some(_)) => {
                let TenantOptionRow { tenant, name, value, is_wrong } = TenantOptionRow::read(row)?;
                if is_wrong {
                    wrong.insert((tenant, name.to_owned()));
                }
                add_option(&mut values, tenant, name, value);
            }
            (11, Some(_)) => {
                let StoreOptionRow { store, name, value } = StoreOptionRow::read(row)?;
                add_option(&mut values, store, name, value);
            }
            (12, Some(_)) => {
                let FactorOptionRow { factor, name, value } = FactorOptionRow::read(row)?;
                add_option(&mut values, factor, name, value);
            }
            (13, Some(application)) => add_range(application, &AddressRange::read(row)?),
            (14, Some(application)) => {
                let id = row.id(0)?;
                if let Some(tenant) = application.tenants.iter_mut().find(|tenant| tenant.facts.id == id) {
                    tenant.has_questionnaire = true;
                }
            }
            (_, Some(application)) => add_entry(application, &InstanceMetadata::read(row)?),
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

fn add_option(values: &mut Values, owner: Uuid, name: &str, value: &str) {
    values.entry(owner).or_default().insert(name.to_owned(), value.to_owned());
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
fn unsupported_settings_of(row: &ClientAppRow<'_>) -> Vec<UnsupportedSetting> {
    unsupported_settings(&ClientSettings {
        is_pairwise: row.subject_type == "Pairwise",
        encrypts_access_tokens: row.encrypts_access_tokens.unwrap_or_default(),
        id_token_encryption: Encryption { alg: row.id_token_encryption, enc: None },
        userinfo_encryption: Encryption { alg: row.userinfo_encryption, enc: None },
        require_pushed_authorization_requests: row.require_pushed_authorization_requests,
        security_profile: security_profile(row.security_profile),
        ..ClientSettings::default()
    })
}

impl From<ClientAppRow<'_>> for Application {
    fn from(row: ClientAppRow<'_>) -> Self {
        Self {
            unsupported_settings: unsupported_settings_of(&row),
            id: row.id,
            rid: row.rid,
            subscription: row.subscription,
            name: row.name,
            enabled: row.enabled,
            allow_user_login: row.allow_user_login,
            is_public: row.is_public,
            is_native: row.is_native,
            is_restricted: row.is_restricted,
            allow_cross_subscription: row.allow_cross_subscription,
            scope_filter_enabled: row.scope_filter_enabled,
            signs_out_silently: row.logout_consent == "Implicit",
            consent: match row.access_grant_consent {
                "Implicit" => ConsentMode::Implicit,
                "Explicit" => ConsentMode::Explicit,
                "Systematic" => ConsentMode::Systematic,
                _ => ConsentMode::External,
            },
            allowed_response_types: row.allowed_response_types,
            security_profile: security_profile(row.security_profile),
            filters_resources: row.filters_resources,
            includes_groups: row.includes_groups,
            client_uri: row.client_uri,
            logo_uri: row.logo_uri,
            allows_devices: row.allows_devices,
            pkce: match row.pkce {
                "AsTenant" => PkceMode::AsTenant,
                "Optional" => PkceMode::Optional,
                _ => PkceMode::Required,
            },
            scope_claims_in_id_token: row.id_token_claims == "Scopes",
            requires_second_factor: row.requires_second_factor,
            refreshes_in_session: row.refresh_tokens == "Session",
            login_uris: Vec::new(),
            logout_uris: Vec::new(),
            scopes: Vec::new(),
            resources: Vec::new(),
            metadata: serde_json::Map::new(),
            tenants: Vec::new(),
            rules: Arc::default(),
            epoch: 0,
        }
    }
}

fn add_uri(application: &mut Application, row: RedirectUri<'_>) {
    let uris = if row.kind == "Login" { &mut application.login_uris } else { &mut application.logout_uris };
    uris.push(row.uri);
}

impl From<TenantRow> for ServingTenant {
    fn from(row: TenantRow) -> Self {
        Self {
            facts: TenantFacts { id: row.id, instances: Vec::new() },
            name: row.name,
            subscription: row.subscription,
            stores: Vec::new(),
            providers: Vec::new(),
            factors: Vec::new(),
            options: unset(Owner::Tenant),
            ranges: Vec::new(),
            has_questionnaire: false,
        }
    }
}

fn add_range(application: &mut Application, row: &AddressRange<'_>) {
    let tenant = application.tenants.iter_mut().find(|one| one.facts.id == row.tenant);
    if let (Some(tenant), Ok(lower), Ok(upper)) = (tenant, row.lower.parse(), row.upper.parse()) {
        tenant.ranges.push((lower, upper));
    }
}

fn add_instance(application: &mut Application, row: &InstanceRow<'_>) {
    let Some(tenant) = application.tenants.iter_mut().find(|one| one.facts.id == row.tenant) else {
        return;
    };
    let InstanceRow { id, subscription, creates_platform_users, is_trusted, .. } = *row;
    let about = About {
        name: row.name.to_owned(),
        icon: row.icon.map(content_path),
        metadata: serde_json::Map::new(),
    };
    let kind = if row.is_store {
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
    } else if let Some(kind) = ProviderKind::named(row.idp_type) {
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
        return;
    };
    tenant.facts.instances.push(InstanceFacts { id, is_hidden: row.is_hidden, kind });
}

/// Adds a metadata entry of an instance.
fn add_entry(application: &mut Application, row: &InstanceMetadata<'_>) {
    for tenant in &mut application.tenants {
        let stores = tenant.stores.iter_mut().map(|store| (store.id, &mut store.about.metadata));
        let providers =
            tenant.providers.iter_mut().map(|provider| (provider.id, &mut provider.about.metadata));
        for (_, metadata) in stores.chain(providers).filter(|(id, _)| *id == row.instance) {
            metadata.insert(row.key.to_owned(), row.value.unwrap_or_default().into());
        }
    }
}

/// Adds an MFA instance that an instance requires.
fn add_required_factor(application: &mut Application, row: &RequiredFactor) {
    for tenant in &mut application.tenants {
        let stores = tenant.stores.iter_mut().map(|store| (store.id, &mut store.factors));
        let providers = tenant.providers.iter_mut().map(|provider| (provider.id, &mut provider.factors));
        let requiring = stores.chain(providers).filter(|(id, _)| *id == row.instance);
        requiring.for_each(|(_, factors)| factors.push(row.factor));
    }
}

fn add_factor(application: &mut Application, row: &FactorRow<'_>) {
    let FactorRow { id, is_of_application, .. } = *row;
    let owner = Owner::of_type(row.idp_type);
    let Some(kind) = owner.and_then(OfferedFactor::kind_of) else { return };
    if let Some(tenant) = application.tenants.iter_mut().find(|one| one.facts.id == row.tenant) {
        let options = unset(OfferedFactor::owner_of(kind));
        tenant.factors.push(OfferedFactor { id, kind, is_of_application, options });
    }
}
