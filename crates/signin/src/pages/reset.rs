//! The pages of a forgotten password: the user of a name gets a link by mail, and the link's page sets a new password
//! without signing in.

use std::{collections::HashMap, sync::Arc};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_flow::{FirstFactor, Step};
use chancery_record::{Secret, Timestamp, Value};
use chancery_resource::{
    AppContext, MasterKey, Problem, Tx,
    settings::{Options, TenantOption},
};
use chancery_store::{Class, Mode, Store, selectable};
use chancery_userstore::password::reset_by_mail::{self, Reset};
use serde_json::json;
use uuid::Uuid;

use super::{
    new_password::{code_of, rules_of},
    password::LONGEST,
};
use crate::{
    client_app::{Application, ResetDelivery},
    flow::{context::FlowContext, pending_flow::PendingFlow, response::Page},
    person::context::context_of_store,
    provider::{Provider, Visit},
};

/// The name of the pages of a forgotten password.
pub const RESET: &str = "reset";

/// The path of the pages below a tenant's issuer.
pub const RESET_PATH: &str = "/password/reset";

/// The content of a link: a user of a store, and the token as the proof.
pub struct ResetLink {
    store: Uuid,
    /// The user.
    pub user: Uuid,
    token: Secret,
}

impl ResetLink {
    /// The sealed link for an address of this tenant: it cannot be forged, and does not open at another tenant.
    fn seal(&self, master: &MasterKey, tenant: Uuid) -> String {
        let text = [self.store.as_bytes(), self.user.as_bytes(), self.token.expose()].concat();
        BASE64_URL_SAFE_NO_PAD.encode(master.seal(&associated_data(tenant), &text))
    }

    /// Opens a link of this tenant's.
    pub fn open(master: &MasterKey, tenant: Uuid, sealed: &str) -> Option<Self> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let text = master.open(&associated_data(tenant), &sealed)?;
        let (store, rest) = text.expose().split_first_chunk::<16>()?;
        let (user, token) = rest.split_first_chunk::<16>()?;
        Some(Self {
            store: Uuid::from_bytes(*store),
            user: Uuid::from_bytes(*user),
            token: Secret::new(token),
        })
    }
}

fn associated_data(tenant: Uuid) -> String {
    format!("password_reset/{tenant}")
}

/// The tenant and the stores in which a forgotten password can be reset.
pub struct ResetScope {
    tenant: Uuid,
    stores: Vec<Uuid>,
}

/// A request for a link, which is handled after the response was sent.
pub struct ResetRequest {
    store: Store,
    app: Arc<AppContext>,
    scope: ResetScope,
    /// The beginning of the link.
    address: String,
    name: String,
    now: Timestamp,
}

impl ResetRequest {
    /// Looks up the name, and sends a link to its user.
    pub async fn work(self) -> Result<(), Problem> {
        let store = self.store.with(Class::Background);
        store.run("RequestPasswordReset", Mode::Write, None, move |tx| self.send(tx)).await
    }

    /// The first store, in order, that knows the name sends the link.
    fn send(&self, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let mut any_store = None;
        for id in &self.scope.stores {
            let context = context_of_store(&self.app, tx, *id, self.now)?;
            let link = |user: Uuid, token: &Secret| {
                let link = ResetLink { store: *id, user, token: token.clone() };
                format!("{}token={}", self.address, link.seal(&self.app.master, self.scope.tenant))
            };
            if reset_by_mail::send_link(&context, tx, &self.name, link)? {
                return Ok(());
            }
            any_store = any_store.or(Some(context));
        }
        any_store.map_or(Ok(()), |context| reset_by_mail::write_for_unknown_user(&context, tx))
    }
}

impl Provider<'_> {
    /// Where people of the issuer's tenant can reset their passwords: at the stores that the flow offers, else at the
    /// tenant's. `None`: the tenant does not permit it.
    pub async fn reset_scope(
        self,
        visit: &Visit,
        pending: Option<&PendingFlow>,
    ) -> Result<Option<ResetScope>, Problem> {
        let Some(tenant) = visit.issuer.tenant_id() else { return Ok(None) };
        let finding = self.store.run("FindResetStores", Mode::Quick, None, move |tx| stores_of(tx, tenant));
        let Some(stores) = finding.await? else { return Ok(None) };
        let Some(pending) = pending else { return Ok(Some(ResetScope { tenant, stores })) };
        let Some(application) = self.application_of(pending).await? else { return Ok(None) };
        let flow_context = FlowContext::new(self, application, visit, pending);
        let evaluated = self.evaluate(visit, pending, &flow_context).await?;
        let offered = match evaluated.due.step() {
            Step::FirstFactor(due) if due.tenant == tenant => {
                due.offered.iter().map(|instance| instance.id).collect()
            }
            _ => stores,
        };
        Ok(Some(ResetScope { tenant, stores: offered }))
    }

    /// A request for a link whose address starts with `address`.
    pub fn request_reset(
        self,
        visit: &Visit,
        scope: ResetScope,
        address: String,
        name: String,
    ) -> ResetRequest {
        // a longer name cannot exist
        let name = if name.len() <= LONGEST { name } else { String::new() };
        ResetRequest {
            store: self.store.clone(),
            app: Arc::clone(self.context),
            scope,
            address,
            name,
            now: visit.now,
        }
    }

    /// The page of a link. `None`: the link is invalid.
    pub async fn show_reset(self, visit: &Visit, link: ResetLink) -> Result<Option<Page>, Problem> {
        let (app, now) = (Arc::clone(self.context), visit.now);
        let state = self.store.run("ShowPasswordReset", Mode::Quick, None, move |tx| {
            let context = context_of_store(&app, tx, link.store, now)?;
            reset_by_mail::state_by_link(&context, tx, link.user, &link.token)
        });
        let state = gone_is_none(state.await)?;
        Ok(state.map(|state| {
            let context = json!({ "step": "set", "username": state.login_name, "rules": rules_of(&state) });
            reset_page(context)
        }))
    }

    /// Hashes the new password of a link outside of transactions, and sets it. Returns the error code of a rejected
    /// password. `None`: the link is not valid.
    ///
    /// # Errors
    /// The database fails, or the queue for hashing passwords is full.
    pub async fn reset_password(
        self,
        visit: &Visit,
        link: ResetLink,
        password: Secret,
    ) -> Result<Option<Result<(), &'static str>>, Problem> {
        let (app, now, link) = (Arc::clone(self.context), visit.now, Arc::new(link));
        let opened = Arc::clone(&link);
        let beginning = self.store.run("BeginPasswordReset", Mode::Quick, None, move |tx| {
            let context = context_of_store(&app, tx, opened.store, now)?;
            reset_by_mail::begin(&context, tx, opened.user, &opened.token, password.clone()).map(Some)
        });
        let Some(work) = gone_is_none(beginning.await)? else { return Ok(None) };
        let redeemed = self.pool.run(None, work).await?;
        let app = Arc::clone(self.context);
        let ending = self.store.run("ResetForgottenPassword", Mode::Write, None, move |tx| {
            let mut context = context_of_store(&app, tx, link.store, now)?;
            Ok(match reset_by_mail::end(&mut context, tx, link.user, &link.token, &redeemed)? {
                Reset::Done => Some(Ok(())),
                Reset::Faulty(fault) => Some(Err(code_of(fault))),
                Reset::Refused => None,
            })
        });
        gone_is_none(ending.await)
    }
}

/// A link of a deleted or inactive store is invalid.
fn gone_is_none<T>(result: Result<Option<T>, Problem>) -> Result<Option<T>, Problem> {
    match result {
        Err(problem) if problem.status() == 404 => Ok(None),
        result => result,
    }
}

/// A page of a forgotten password.
pub fn reset_page(context: serde_json::Value) -> Page {
    Page::new("PasswordReset", RESET, context)
}

/// The address of the page of a forgotten password; `None` if no offered store permits a reset.
pub fn reset_url(
    application: &Application,
    due: &FirstFactor,
    app: &AppContext,
    pending: &PendingFlow,
) -> Option<String> {
    let tenant = application.tenant(due.tenant)?;
    let is_offered = |store: Uuid| due.offered.iter().any(|instance| instance.id == store);
    let mut offered = tenant.stores.iter().filter(|store| is_offered(store.id));
    let can_be = tenant.options.get(TenantOption::PASSWORD_RESET_ENABLED)
        && offered.any(|store| match store.reset_delivery() {
            ResetDelivery::Mail => true,
            ResetDelivery::Program => app.has_reset_program,
            ResetDelivery::None => false,
        });
    let issuer = chancery_auth::issuer_url("", Some(due.tenant));
    can_be.then(|| format!("{issuer}{RESET_PATH}?flow={}", pending.id))
}

selectable! {
    /// An option of a tenant.
    struct OptionRow from "FROM option_value WHERE apply_to_tenant_id = ?1" {
        name: String = "name",
        value: String = "value",
    }
}

const STORES: &str = "SELECT i.id FROM tenant t JOIN tenant_idp_instance n ON n.tenant_rid = t.rid \
    JOIN idp_instance i ON i.rid = n.idp_instance_rid JOIN idp_type y ON y.id = i.idp_type_id \
    WHERE t.id = ?1 AND i.is_active AND y.is_active AND NOT i.is_hidden AND i.store_name_key IS NOT NULL \
    AND NOT EXISTS (SELECT 1 FROM option_value o WHERE o.apply_to_idp_instance_id = i.id \
    AND o.has_configuration_error) ORDER BY i.position, i.name_key, i.id";

/// The visible stores of a tenant; `None` if the tenant permits no reset.
fn stores_of(tx: &mut Tx<'_>, tenant: Uuid) -> Result<Option<Vec<Uuid>>, Problem> {
    let (mut own, mut stores) = (HashMap::new(), Vec::new());
    let key = [Value::Id(tenant)];
    tx.query_all(&[(OptionRow::SELECT, &key), (STORES, &key)], &mut |index, row| {
        if index == 0 {
            let OptionRow { name, value } = OptionRow::read(row)?;
            own.insert(name, value);
        } else {
            stores.push(row.id(0)?);
        }
        Ok(())
    })?;
    Ok(Options::<TenantOption>::new(own).get(TenantOption::PASSWORD_RESET_ENABLED).then_some(stores))
}

#[cfg(test)]
mod tests {
    use chancery_record::Secret;
    use chancery_resource::MasterKey;
    use uuid::Uuid;

    use super::ResetLink;

    #[test]
    fn a_reset_link_opens_only_at_its_tenant() {
        let (master, tenant) = (MasterKey::generate(), Uuid::from_u128(1));
        let link =
            ResetLink { store: Uuid::from_u128(2), user: Uuid::from_u128(3), token: Secret::new("t0ken") };
        let sealed = link.seal(&master, tenant);
        let opened = ResetLink::open(&master, tenant, &sealed).unwrap();
        assert_eq!((opened.store, opened.user), (link.store, link.user));
        assert!(opened.token.matches(b"t0ken") && !sealed.contains("t0ken"));
        assert!(ResetLink::open(&master, Uuid::from_u128(4), &sealed).is_none());
        assert!(ResetLink::open(&MasterKey::generate(), tenant, &sealed).is_none());
        for bad in ["", "!", "AAAA", sealed.get(1..).unwrap()] {
            assert!(ResetLink::open(&master, tenant, bad).is_none(), "{bad}");
        }
    }
}
