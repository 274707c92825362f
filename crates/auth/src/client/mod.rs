//! A client app as the OAuth endpoints need it, read in one round trip.

mod row;

use std::sync::LazyLock;

use chancery_oauth::{UnsupportedSetting, is_same_resource, normalize_resource};
use chancery_record::{Secret, Timestamp, Value, fold};
use chancery_resource::{MasterKey, Permit, ROOT, open_secret, role_condition};
use chancery_store::{EPOCH, Error, Mode, Store, Tx, selectable};
use uuid::Uuid;

use crate::{canonical_id, signing_certificate::lifetime};
use row::{ClientAppRow, KeySetRow};

/// How a client app authenticates: `token_endpoint_auth_method` (RFC 7591, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `client_secret_basic`: by its secret in the header.
    Basic,
    /// `client_secret_post`: by its secret in the body.
    Post,
    /// Not configured: by its secret, in the header or in the body.
    Either,
    /// `client_secret_jwt`: by an assertion with a MAC by its secret.
    SecretJwt,
    /// `private_key_jwt`: by an assertion signed with its key.
    PrivateKeyJwt,
    /// `tls_client_auth`: by a certificate of a trusted authority with its name.
    Tls,
    /// `self_signed_tls_client_auth`: by a certificate of its key sets.
    SelfSignedTls,
    /// `none`: a public client does not authenticate.
    None,
}

impl Method {
    /// The method's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::Either => "client_secret_basic client_secret_post",
            Self::SecretJwt => "client_secret_jwt",
            Self::PrivateKeyJwt => "private_key_jwt",
            Self::Tls => "tls_client_auth",
            Self::SelfSignedTls => "self_signed_tls_client_auth",
            Self::None => "none",
        }
    }

    fn named(name: &str) -> Self {
        match name {
            "client_secret_basic" => Self::Basic,
            "client_secret_post" => Self::Post,
            "client_secret_jwt" => Self::SecretJwt,
            "private_key_jwt" => Self::PrivateKeyJwt,
            "tls_client_auth" => Self::Tls,
            "self_signed_tls_client_auth" => Self::SelfSignedTls,
            _ => Self::None,
        }
    }
}

/// The authentication of a client app, and the binding of its tokens.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The method of authentication.
    pub method: Method,
    /// Whether the client app's tokens are bound to its certificate (RFC 8705).
    pub needs_certificate: bool,
    /// Whether the client app's tokens are bound to a key (DPoP, RFC 9449).
    pub needs_dpop: bool,
    /// Whether the client app's DPoP proofs need a nonce.
    pub needs_nonce: bool,
    /// The name expected in the client's certificate: subject, DNS, URI, IP, e-mail; one is set.
    pub names: [Option<String>; 5],
}

selectable! {
    /// A stored secret of a client app.
    #[derive(Clone)]
    pub struct StoredSecret from "FROM client_app_secret WHERE client_app_id" {
        /// The secret.
        pub id: Uuid = "id",
        /// The secret's keyed digest.
        pub digest: Vec<u8> = "digest",
        sealed: Option<String> = "sealed_secret",
        expiry: Option<Timestamp> = "expiry",
    }
}

impl ClientApp {
    /// The cached form of a client app that authenticated by this secret: without lists, which may be long.
    #[must_use]
    pub fn authenticated_by(&self, digest: &Secret) -> Self {
        let matching = self.secrets.iter().filter(|stored| digest.matches(&stored.digest)).take(1);
        let secrets = matching.map(|stored| StoredSecret { sealed: None, ..stored.clone() }).collect();
        let names = Default::default();
        let configuration = Configuration { names, ..self.configuration.clone() };
        let (key_sets, scopes, resources) = (Vec::new(), Vec::new(), Vec::new());
        Self { configuration, secrets, key_sets, scopes, resources, ..self.clone() }
    }
}

impl StoredSecret {
    /// Whether the secret has not expired.
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.expiry.is_none_or(|expiry| expiry > now)
    }

    /// The secret itself, decrypted, if it is stored with its digest.
    pub fn decrypted(&self, master: &MasterKey) -> Option<Secret> {
        let sealed = self.sealed.as_deref()?;
        open_secret(master, "client_app_secret", "sealed_secret", &Value::Id(self.id), sealed)
            .map(Secret::new)
    }
}

/// A key set that can be used now.
#[derive(Clone)]
pub struct KeySet {
    /// The key set.
    pub id: Uuid,
    /// A JWK set.
    pub jwks: Option<String>,
    /// The address of a JWK set.
    pub jwks_uri: Option<String>,
    /// A certificate in DER.
    pub certificate: Option<Vec<u8>>,
    /// The id of the only key of the set to use.
    pub kid: Option<String>,
    /// The only algorithm allowed.
    pub algorithm: Option<String>,
}

/// A client app.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the client app")]
pub struct ClientApp {
    /// The client app.
    pub id: Uuid,
    /// The client app's subscription.
    pub subscription: Uuid,
    /// Whether the client app may get and use tokens at all, at the issuer that the request is to.
    pub enabled: bool,
    /// Whether the client app gets tokens for itself, by client credentials.
    pub is_allowed: bool,
    /// Whether the client app is public (RFC 6749, section 2.1): it has no credentials.
    pub is_public: bool,
    /// Whether the client app's tokens are reference tokens, not JWTs.
    pub gets_references: bool,
    /// Whether requesting a scope that is not the client app's is an error; else such a scope is left out.
    pub filters_scopes: bool,
    /// Whether the client app gets tokens for its own resources only.
    pub filters_resources: bool,
    /// Whether the client app has a FAPI profile.
    pub is_fapi: bool,
    /// Its configured features that are not supported.
    pub unsupported_settings: Vec<UnsupportedSetting>,
    /// Whether that is a FAPI 2.0 profile, where an assertion must have this server as its only audience.
    pub is_fapi2: bool,
    /// Whether it always gets signed introspection responses (FAPI 2.0 Message Signing, section 5.5).
    pub needs_signed_introspection: bool,
    /// How the client app authenticates.
    pub configuration: Configuration,
    /// The client app's secrets.
    pub secrets: Vec<StoredSecret>,
    /// The client app's key sets that are usable now.
    pub key_sets: Vec<KeySet>,
    /// The client app's scopes.
    pub scopes: Vec<String>,
    /// Those of the requested resources that exist in its subscription.
    pub resources: Vec<RegisteredResource>,
    /// The lifetime of its tokens, in seconds.
    pub lifetime: i64,
}

selectable! {
    /// A resource of the client app's subscription.
    #[derive(Clone)]
    pub struct RegisteredResource {
        /// Its registered name.
        pub name: String = "r.key",
        /// Whether it is the client app's own.
        pub is_own: bool = "count(CASE WHEN a.id = c.id THEN 1 END)",
    }
}

impl ClientApp {
    /// The requested resource of this name: with the same spelling, else the same registered one.
    pub fn resource(&self, name: &str) -> Option<&RegisteredResource> {
        let exact = self.resources.iter().find(|known| known.name == name);
        exact.or_else(|| self.resources.iter().find(|known| is_same_resource(&known.name, name)))
    }
}

/// The optional parts of a client app to read.
#[derive(Clone, Default)]
pub struct ClientQuery {
    /// The tenant at whose issuer the client authenticates; none is the installation.
    pub tenant: Option<Uuid>,
    /// The requested resources.
    pub resources: Vec<String>,
    /// Whether the client app's scopes are read.
    pub scopes: bool,
}

/// Finds the client app of this id, or the installation's own by its name, as it is at the issuer of
/// `query.tenant`, and the epoch that was read first. The statements are the same whether it exists or not.
pub async fn find(
    store: &Store,
    client: &str,
    query: ClientQuery,
    now: Timestamp,
) -> Result<(Option<ClientApp>, i64), Error> {
    let client = client.to_owned();
    store.run("FindClient", Mode::Quick, None, move |tx| read(tx, &client, &query, now)).await
}

/// A client app found at an earlier epoch, with the resources and scopes that are requested now. `None`: the epoch has advanced.
pub async fn refresh(
    store: &Store,
    app: &ClientApp,
    epoch: i64,
    query: ClientQuery,
) -> Result<Option<ClientApp>, Error> {
    let mut app = app.clone();
    if !query.scopes && query.resources.is_empty() {
        return Ok((store.epoch().await? == epoch).then_some(app));
    }
    let id = app.id;
    let read = store.run("FindAsked", Mode::Quick, Some(epoch), move |tx| {
        let (mut scopes, mut resources) = (Vec::new(), Vec::new());
        let resource_statement = registered_resources("?1", &query.resources);
        let (app_key, resource_values) =
            ([Value::Id(id)], resource_parameters(Value::Id(id), &query.resources));
        let text = format!("{SCOPES} = ?1 ORDER BY rid");
        let statements: [(&str, &[Value]); 2] = [(&text, &app_key), (&resource_statement, &resource_values)];
        tx.query_all(&statements, &mut |index, row| {
            if index == 0 {
                scopes.push(row.text(0)?.to_owned());
            } else {
                resources.push(RegisteredResource::read(row)?);
            }
            Ok(())
        })?;
        Ok::<_, Error>((scopes, resources))
    });
    match read.await {
        Ok(read) => {
            (app.scopes, app.resources) = read;
            Ok(Some(app))
        }
        Err(Error::Stale) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The SQL condition that a role `x` administers anything above tenants.
static ABOVE_TENANTS: LazyLock<String> =
    LazyLock::new(|| role_condition("x.role_type", |line| line.role.satisfies(Permit::SubscriptionAdmin)));

/// The SQL condition that a client app may be used at an issuer. `app` is its alias, `tenant` the parameter
/// of the issuing tenant, if it is one. The client app's subscription is active, and so is one of its
/// tenants, if it has any and does not administer what is above tenants. The issuing tenant is active, too,
/// and the client app is assigned to it, in the same subscription or allowed to cross subscriptions.
pub fn serves(app: &str, tenant: Option<&str>) -> String {
    let active = "JOIN tenant x ON x.rid = m.tenant_rid JOIN subscription y ON y.id = x.subscription_id \
        WHERE x.is_active AND y.status = 'Active' AND m.client_app_rid";
    let at_tenant = tenant.map_or_else(String::new, |tenant| {
        format!(
            " AND EXISTS (SELECT 1 FROM tenant t JOIN subscription y ON y.id = t.subscription_id \
             JOIN tenant_client_app m ON m.tenant_rid = t.rid AND m.client_app_rid = {app}.rid \
             WHERE t.id = {tenant} AND t.is_active AND y.status = 'Active' \
             AND (t.subscription_id = {app}.subscription_id OR {app}.allow_cross_subscription))"
        )
    });
    format!(
        "(EXISTS (SELECT 1 FROM subscription y WHERE y.id = {app}.subscription_id AND y.status = 'Active') \
         AND (NOT EXISTS (SELECT 1 FROM tenant_client_app m WHERE m.client_app_rid = {app}.rid) \
         OR EXISTS (SELECT 1 FROM tenant_client_app m {active} = {app}.rid) \
         OR EXISTS (SELECT 1 FROM client_app_role x WHERE x.client_app_id = {app}.id \
         AND {})){at_tenant})",
        *ABOVE_TENANTS
    )
}

const SCOPES: &str = "SELECT key FROM client_app_scope WHERE client_app_id";

selectable! {
    /// The lifetime of tokens at a tenant of the client app; the caller sorts the issuing tenant first.
    struct TenantLifetime from "FROM client_app a \
        JOIN tenant_client_app m ON m.client_app_rid = a.rid JOIN tenant t ON t.rid = m.tenant_rid \
        LEFT JOIN option_value o ON o.apply_to_tenant_id = t.id AND o.name = 'AccessTokenLifetime' WHERE a.id" {
        tenant: Uuid = "t.id",
        option: Option<String> = "o.value",
    }
}

/// The id of the installation's own client app. The name alone does not identify it: others may have it.
const OWN: &str = "(SELECT f.id FROM client_app f WHERE f.rid = (SELECT min(r.rid) FROM client_app r \
    JOIN client_app_role s ON s.client_app_id = r.id WHERE r.name_key = ?1 AND s.role_type = 'SystemAdmin'))";

/// The statement for those of these resources, in any spelling, that exist in the subscription of the client app that
/// `who` selects, with how often each is its own. The parameters from the second on are the names, then their normal
/// forms.
fn registered_resources(who: &str, resources: &[String]) -> String {
    let list = |from: usize| {
        let placeholders: Vec<String> =
            (from..from + resources.len()).map(|number| format!("?{number}")).collect();
        if placeholders.is_empty() { "NULL".to_owned() } else { placeholders.join(", ") }
    };
    // CROSS JOIN keeps SQLite from walking all client apps of the subscription
    format!(
        "SELECT {} FROM client_app c CROSS JOIN resource_owner o \
         CROSS JOIN client_app_resource r CROSS JOIN client_app a WHERE c.id = {who} \
         AND (o.key IN ({}) OR o.normal_key IN ({})) AND o.subscription_id = c.subscription_id AND r.key = o.key \
         AND a.id = r.client_app_id AND a.subscription_id = c.subscription_id GROUP BY r.key",
        RegisteredResource::COLUMNS,
        list(2),
        list(2 + resources.len()),
    )
}

fn resource_parameters(key: Value, resources: &[String]) -> Vec<Value> {
    let names = resources.iter().map(|name| Value::Text(name.clone()));
    let normal = resources.iter().map(|name| Value::Text(normalize_resource(name)));
    std::iter::once(key).chain(names).chain(normal).collect()
}

fn read(
    tx: &mut Tx<'_>,
    client: &str,
    query: &ClientQuery,
    now: Timestamp,
) -> Result<(Option<ClientApp>, i64), Error> {
    let (who, key) = match canonical_id(client) {
        Some(id) => ("?1", Value::Id(id)),
        None if fold(client) == ROOT => (OWN, ROOT.into()),
        None => ("?1", Value::Id(Uuid::nil())),
    };
    let tenant = query.tenant;
    let about = format!(
        "SELECT {} FROM client_app a \
         LEFT JOIN client_app_authentication_configuration c ON c.client_app_id = a.id WHERE a.id = {who}",
        ClientAppRow::columns(&serves("a", tenant.map(|_| "?2")))
    );
    let own = |text: &str, order: &str| format!("{text} = {who}{order}");
    let tenants = own(TenantLifetime::SELECT, " ORDER BY CASE WHEN t.id = ?2 THEN 0 ELSE 1 END LIMIT 2");
    let (secrets, key_sets) = (own(StoredSecret::SELECT, ""), own(KeySetRow::SELECT, " ORDER BY rid"));
    let (scopes, resource_statement) =
        (own(SCOPES, " ORDER BY rid"), registered_resources(who, &query.resources));
    let serving: Vec<Value> = std::iter::once(key.clone()).chain(tenant.map(Value::Id)).collect();
    let (app_key, at_tenant) = ([key.clone()], [key.clone(), Value::Id(tenant.unwrap_or_default())]);
    let resource_values = resource_parameters(key, &query.resources);
    // the epoch is read first, so that what follows is no older
    let statements: [(&str, &[Value]); 7] = [
        (EPOCH, &[]),
        (&about, &serving),
        (&secrets, &app_key),
        (&key_sets, &app_key),
        (&scopes, &app_key),
        (&tenants, &at_tenant),
        (&resource_statement, &resource_values),
    ];
    let (mut epoch, mut app, mut tenants) = (0, None::<ClientApp>, Vec::new());
    tx.query_all(&statements, &mut |index, row| {
        let app = match (index, &mut app) {
            (0, _) => {
                epoch = row.int(0)?;
                return Ok(());
            }
            (1, app) => {
                *app = Some(ClientAppRow::read(row)?.into());
                return Ok(());
            }
            (_, None) => return Ok(()),
            (_, Some(app)) => app,
        };
        match index {
            2 => app.secrets.push(StoredSecret::read(row)?),
            3 => app.key_sets.extend(KeySetRow::read(row)?.usable(now)),
            4 => app.scopes.push(row.text(0)?.to_owned()),
            5 => tenants.push(TenantLifetime::read(row)?),
            _ => app.resources.push(RegisteredResource::read(row)?),
        }
        Ok(())
    })?;
    // the lifetime of tokens is set by the issuing tenant, or by the only one
    let own = match (tenant, tenants.as_slice()) {
        (Some(issuer), [first, ..]) if first.tenant == issuer => Some(first),
        (None, [only]) => Some(only),
        _ => None,
    };
    if let (Some(app), Some(own)) = (&mut app, own) {
        app.lifetime = lifetime(own.option.as_deref()) / 1000;
    }
    Ok((app, epoch))
}
