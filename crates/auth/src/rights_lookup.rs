//! The look-up of rights in the database: whether a token is valid, its caller, and the store that a path names.

use std::{collections::HashMap, sync::Arc};

use chancery_record::{Timestamp, Value, fold, parse_id};
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{HeldRole, Lineage, RoleType, ScopeKind, Sql, StoreScope};
use chancery_store::{EPOCH, Error, Mode, Row, Store, Tx, selectable};
use uuid::Uuid;

use crate::{
    Caller, Claims, SecurityContext, StoreContext, TokenService,
    client::serves,
    person::{PersonRows, grant_statement, person_statements},
    token_service::OpenedToken,
};

/// An opened token and the name of a store, by which rights are looked up.
pub struct RightsLookup {
    pub(crate) token: Option<OpenedToken>,
    pub(crate) name: Option<String>,
    pub(crate) now: Timestamp,
}

impl RightsLookup {
    /// Opens a token, if there is one, by the keys that are valid now. An invalid one has no caller.
    pub async fn new(
        store: &Store,
        token_service: &TokenService,
        token: Option<&str>,
        name: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let token = match token {
            Some(token) => token_service.open(store, token, true, now).await?,
            None => None,
        };
        Ok(Self { token, name: name.map(str::to_owned), now })
    }

    /// Looks up the rights in one round trip, with one more for a reference token, whose claims must be found first, and
    /// for a person, whose user is found by the identity.
    ///
    /// # Errors
    /// [`Error::Stale`]: the signature was verified at another epoch. Errors of the store.
    pub fn look_up(&self, tx: &mut Tx<'_>) -> Result<SecurityContext, Error> {
        Ok(self.look_up_for(tx, None)?.0)
    }

    pub(crate) fn look_up_for(
        &self,
        tx: &mut Tx<'_>,
        introspecting: Option<Uuid>,
    ) -> Result<(SecurityContext, IntrospectionAccess), Error> {
        let signed = match &self.token {
            Some(OpenedToken::Signed(claims, _)) => Some(Arc::clone(claims)),
            _ => None,
        };
        let mut result = LookupResult::default();
        self.look_up_independent(tx, signed.as_deref(), introspecting, &mut result)?;
        if matches!(self.token, Some(OpenedToken::Signed(_, Some(since))) if since != result.epoch) {
            return Err(Error::Stale);
        }
        let referenced = result.claims.take().map(Arc::new);
        if let Some(claims) = &referenced {
            look_up_claims(tx, claims, introspecting, &mut result)?;
        }
        let claims = signed.or(referenced).filter(|_| !result.is_revoked);
        if let Some(claims) = claims.as_ref().filter(|claims| claims.gid.is_some()) {
            let rows = std::mem::take(&mut result.person);
            result.caller = rows.caller(tx, claims.sub, claims.client_id, claims.has_rights(), self.now)?;
        }
        let caller = result.caller.filter(|_| claims.is_some()).map(Arc::new);
        let store = result.store.map(|mut store| {
            store.scope.options = Arc::new(Options::<UserStoreOption>::new(result.options));
            Arc::new(store)
        });
        Ok((SecurityContext { epoch: result.epoch, claims, caller, store }, result.access))
    }

    /// Runs the statements that do not depend on each other.
    fn look_up_independent(
        &self,
        tx: &mut Tx<'_>,
        signed: Option<&Claims>,
        introspecting: Option<Uuid>,
        result: &mut LookupResult,
    ) -> Result<(), Error> {
        // the epoch is read first, so that what follows is no older
        let mut queries = Queries::default();
        queries.push(EPOCH.to_owned(), Vec::new(), |result, row| {
            result.epoch = row.int(0)?;
            Ok(())
        });
        if let Some(OpenedToken::Reference(digest)) = &self.token {
            let text = "SELECT claims FROM reference_token WHERE digest = ?1".to_owned();
            queries.push(text, vec![Value::Bytes(digest.clone())], |result, row| {
                let broken = |_| Error::Internal("a kept token cannot be read".into());
                result.claims = Some(serde_json::from_str(row.text(0)?).map_err(broken)?);
                Ok(())
            });
        }
        if let Some(claims) = signed {
            query_token(&mut queries, claims, introspecting);
        }
        if let Some(name) = &self.name {
            query_store(&mut queries, name);
        }
        queries.run(tx, result)
    }
}

/// What entitles a client app to introspect a token that was issued to another.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntrospectionAccess {
    /// It owns a resource that the token is for.
    pub owns_resource: bool,
    /// It administers everything.
    pub is_system_admin: bool,
}

/// The result of the statements.
#[derive(Default)]
struct LookupResult {
    epoch: i64,
    claims: Option<Claims>,
    is_revoked: bool,
    caller: Option<Caller>,
    person: PersonRows,
    access: IntrospectionAccess,
    store: Option<StoreContext>,
    options: HashMap<String, String>,
}

/// Handles a row of a statement.
type RowHandler<'a> = Box<dyn Fn(&mut LookupResult, &Row<'_>) -> Result<(), Error> + 'a>;

/// Statements for one round trip, each with its row handler.
#[derive(Default)]
struct Queries<'a>(Vec<(String, Vec<Value>, RowHandler<'a>)>);

impl<'a> Queries<'a> {
    fn push(
        &mut self,
        text: String,
        parameters: Vec<Value>,
        on_row: impl Fn(&mut LookupResult, &Row<'_>) -> Result<(), Error> + 'a,
    ) {
        self.0.push((text, parameters, Box::new(on_row)));
    }

    fn run(&self, tx: &mut Tx<'_>, result: &mut LookupResult) -> Result<(), Error> {
        let statements: Vec<_> =
            self.0.iter().map(|(text, parameters, _)| (text.as_str(), parameters.as_slice())).collect();
        tx.query_all(&statements, &mut |index, row| match self.0.get(index) {
            Some((.., on_row)) => on_row(result, row),
            None => Ok(()),
        })
    }
}

/// Looks up the rights of a reference token by its stored claims.
fn look_up_claims(
    tx: &mut Tx<'_>,
    claims: &Claims,
    introspecting: Option<Uuid>,
    result: &mut LookupResult,
) -> Result<(), Error> {
    let mut queries = Queries::default();
    query_token(&mut queries, claims, introspecting);
    queries.run(tx, result)
}

/// Adds the statements that find whether a token was revoked, its caller, and whether another client app may
/// introspect it.
fn query_token<'a>(queries: &mut Queries<'a>, claims: &'a Claims, introspecting: Option<Uuid>) {
    if let Some(client) = introspecting.filter(|client| *client != claims.client_id) {
        query_access(queries, client, &claims.aud);
    }
    let mut sql = Sql::new("SELECT 1 FROM revoked_token WHERE jti IN ");
    sql.add_list(std::iter::once(&claims.jti).chain(&claims.from_jti).map(|jti| jti.as_str().into()));
    queries.push(format!("{} LIMIT 1", sql.text), sql.parameters, |result, _| {
        result.is_revoked = true;
        Ok(())
    });
    // a person may have the id of a client app: the person's token must not carry its rights
    match grant_statement(claims) {
        None => query_caller(queries, claims),
        Some(grant) => {
            let statements = person_statements(grant, claims.sub, claims.has_rights());
            for (index, (text, parameters)) in statements.into_iter().enumerate() {
                queries.push(text, parameters, move |result, row| result.person.read(index, row));
            }
        }
    }
}

/// Adds the statements that find why a client app may introspect a token of another for this audience.
fn query_access(queries: &mut Queries<'_>, client: Uuid, audience: &[String]) {
    let text = "SELECT 1 FROM client_app_role WHERE client_app_id = ?1 AND role_type = 'SystemAdmin'";
    queries.push(text.to_owned(), vec![client.into()], |result, _| {
        result.access.is_system_admin = true;
        Ok(())
    });
    if audience.is_empty() {
        return;
    }
    let mut sql = Sql::new(
        "SELECT 1 FROM client_app_resource r JOIN client_app a ON a.id = r.client_app_id \
         JOIN resource_owner o ON o.key = r.key AND o.subscription_id = a.subscription_id WHERE r.client_app_id = ",
    )
    .bind(client)
    .push(" AND r.key IN ");
    sql.add_list(audience.iter().map(|name| Value::Text(name.clone())));
    queries.push(format!("{} LIMIT 1", sql.text), sql.parameters, |result, _| {
        result.access.owns_resource = true;
        Ok(())
    });
}

/// Why a client app may introspect a token of another for this audience, read at this epoch.
///
/// # Errors
/// [`Error::Stale`]: the epoch has advanced. Errors of the store.
pub async fn read_access(
    store: &Store,
    client: Uuid,
    audience: Vec<String>,
    epoch: i64,
) -> Result<IntrospectionAccess, Error> {
    let looking = move |tx: &mut Tx<'_>| {
        let (mut queries, mut result) = (Queries::default(), LookupResult::default());
        query_access(&mut queries, client, &audience);
        queries.run(tx, &mut result)?;
        Ok(result.access)
    };
    store.run("MayIntrospect", Mode::Quick, Some(epoch), looking).await
}

selectable! {
    /// A role of a client app as a caller, or the client app alone where it has none. `a` is the client app, and `g` the
    /// one that the token was issued to.
    struct RoleOfCaller<'r>(serves) {
        is_enabled: bool = "a.enabled",
        is_allowed: bool = "a.allow_client_credential_login",
        subscription: Uuid = "a.subscription_id",
        customer: Uuid = "s.customer_id",
        role: Option<&'r str> = "r.role_type",
        tenant: Option<Uuid> = "r.apply_to_tenant_id",
        instance: Option<Uuid> = "r.apply_to_idp_instance_id",
        is_holder_enabled: bool = "g.enabled",
        needs_nonce: Option<bool> = "c.require_dpop_nonce",
        holder_subscription: Uuid = "g.subscription_id",
        /// By the conditions of [`serves`].
        are_served: bool = "{serves}",
    }
}

impl RoleOfCaller<'_> {
    /// The role; `None` if the client app has none.
    fn held(&self) -> Result<Option<HeldRole>, Error> {
        let Some(name) = self.role else { return Ok(None) };
        let unknown =
            |what: &str| Error::Internal(format!("a client app has a role {name:?}, which is {what}"));
        let role = RoleType::of(name).ok_or_else(|| unknown("none"))?;
        let scope = role.scope(|kind| match kind {
            ScopeKind::Customer => Some(self.customer),
            ScopeKind::Subscription => Some(self.subscription),
            ScopeKind::Tenant => self.tenant,
            ScopeKind::IdpInstance | ScopeKind::UserStore => self.instance,
            ScopeKind::System | ScopeKind::Nothing => None,
        });
        let scope = scope.ok_or_else(|| unknown("given at nothing"))?;
        Ok(Some(HeldRole { role, scope }))
    }
}

/// Adds the statement that finds a token's caller, enabled while both the client app that the token was
/// issued to and the one whose rights it carries may use tokens.
fn query_caller<'a>(queries: &mut Queries<'a>, claims: &'a Claims) {
    let client = claims.sub;
    let mut parameters = vec![Value::Id(client), Value::Id(claims.client_id)];
    parameters.extend(claims.tid.map(Value::Id));
    let tenant = claims.tid.map(|_| "?3");
    let are_served = serves("a", tenant) + " AND " + &serves("g", tenant);
    let text = format!(
        "SELECT {} FROM client_app a JOIN subscription s ON s.id = a.subscription_id JOIN client_app g ON g.id = ?2 \
         LEFT JOIN client_app_authentication_configuration c ON c.client_app_id = g.id \
         LEFT JOIN client_app_role r ON r.client_app_id = a.id WHERE a.id = ?1",
        RoleOfCaller::columns(&are_served)
    );
    queries.push(text, parameters, move |result, row| {
        let row = RoleOfCaller::read(row)?;
        let caller = result.caller.get_or_insert_with(|| Caller {
            id: client,
            holder: claims.client_id,
            is_person: false,
            enabled: row.is_enabled && row.is_allowed && row.is_holder_enabled && row.are_served,
            needs_nonce: row.needs_nonce == Some(true),
            subscription: row.holder_subscription,
            login_name: None,
            roles: Vec::new(),
        });
        caller.roles.extend(row.held()?);
        Ok(())
    });
}

/// A user store by its id or its name, with its options. The value of a secret option stays encrypted.
pub fn load_store_context(tx: &mut Tx<'_>, name: &str) -> Result<Option<StoreContext>, Error> {
    // only persons' tokens need the time
    let lookup = RightsLookup { token: None, name: Some(name.to_owned()), now: Timestamp(0) };
    Ok(lookup.look_up(tx)?.store.map(Arc::unwrap_or_clone))
}

selectable! {
    /// A user store, with its lineage.
    struct StoreRow from "FROM idp_instance i JOIN subscription s ON s.id = i.subscription_id" {
        number: i64 = "i.rid",
        id: Uuid = "i.id",
        name: String = "i.name",
        subscription: Uuid = "i.subscription_id",
        customer: Uuid = "s.customer_id",
        is_active: bool = "i.is_active",
        metadata: Option<i64> = "(SELECT snapshot_number FROM passkey_trust WHERE source = 'mds')",
        tenant: Option<Uuid> = "(SELECT t.id FROM tenant_idp_instance l JOIN tenant t ON t.rid = l.tenant_rid \
            WHERE l.idp_instance_rid = i.rid AND NOT EXISTS (SELECT 1 FROM tenant_idp_instance o \
            WHERE o.idp_instance_rid = i.rid AND o.tenant_rid <> l.tenant_rid))",
    }
}

impl From<StoreRow> for StoreContext {
    fn from(row: StoreRow) -> Self {
        let StoreRow { number, id, name, subscription, customer, is_active, metadata, tenant } = row;
        let lineage = Lineage {
            customer: Some(customer),
            subscription: Some(subscription),
            tenant,
            instance: Some(id),
        };
        let options = Arc::new(Options::<UserStoreOption>::new(HashMap::new()));
        let scope = StoreScope { number, id, lineage, name, options, metadata };
        Self { scope, subscription, customer, is_active }
    }
}

selectable! {
    /// An option of a user store.
    struct StoreOption from "FROM option_value o" {
        name: String = "o.name",
        value: String = "o.value",
    }
}

/// Adds the statements that find a user store by its id or its name, and its options.
fn query_store(queries: &mut Queries<'_>, name: &str) {
    let (condition, key) = match parse_id(name) {
        Some(id) => ("i.id = ?1 AND i.store_name_key IS NOT NULL", Value::Id(id)),
        None => ("i.store_name_key = ?1", Value::Text(fold(name))),
    };
    let text = format!("{} WHERE {condition}", StoreRow::SELECT);
    queries.push(text, vec![key.clone()], |result, row| {
        result.store = Some(StoreRow::read(row)?.into());
        Ok(())
    });
    let text = format!(
        "{} WHERE o.apply_to_idp_instance_id = (SELECT i.id FROM idp_instance i WHERE {condition})",
        StoreOption::SELECT
    );
    queries.push(text, vec![key], |result, row| {
        let StoreOption { name, value } = StoreOption::read(row)?;
        result.options.insert(name, value);
        Ok(())
    });
}
