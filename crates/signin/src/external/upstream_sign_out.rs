//! Sign-out at the external provider (OpenID Connect RP-Initiated Logout 1.0).

use std::{collections::HashSet, sync::Arc};

use chancery_federation::ProviderKind;
use chancery_management::idp_instance::connection::{Connection, end_session_endpoint};
use chancery_oauth::with_query;
use chancery_record::{Timestamp, Value};
use chancery_resource::{
    AppContext, Problem, Sql, StoreError, Tx,
    settings::{ProviderOption, flag},
};
use chancery_store::{Mode, selectable};
use uuid::Uuid;

use crate::{
    flow::page_name::SIGNED_OUT,
    provider::{Provider, Visit},
};

selectable! {
    /// An active instance with its value of an option, whose name follows.
    struct InstanceOption<'r> from "FROM idp_instance i JOIN option_value o ON o.apply_to_idp_instance_id = i.id \
        WHERE i.is_active AND i.idp_type = 'OpenIdConnect' AND o.value IS NOT NULL AND o.name = " {
        instance: Uuid = "i.id",
        value: &'r str = "o.value",
    }
}

impl Provider<'_> {
    /// The address for signing out at the provider of the sign-in, if the instance has `SignOutUpstream`; `state` is
    /// to be added. If the provider publishes no endpoint, this is only logged: here the person is signed out.
    pub(crate) async fn upstream_sign_out(
        self,
        visit: &Visit,
        instances: Vec<Uuid>,
    ) -> Result<Option<String>, Problem> {
        if instances.is_empty() {
            return Ok(None);
        }
        let (app, now) = (Arc::clone(self.context), visit.now);
        let reading = self
            .store
            .run("UpstreamSignOut", Mode::Quick, None, move |tx| connection_of(&app, tx, &instances, now));
        let Some((instance, connection)) = reading.await? else { return Ok(None) };
        let client = connection.client.id.clone();
        match end_session_endpoint(self.provider_client(visit.now), connection).await {
            Ok(endpoint) => {
                let back = format!("{}/signin/{SIGNED_OUT}", visit.issuer.url);
                let fields = [("client_id", client), ("post_logout_redirect_uri", back)];
                let fields = fields.map(|(name, value)| (name.to_owned(), value));
                Ok(Some(with_query(&endpoint, &fields)))
            }
            Err(reason) => {
                tracing::warn!(%instance, reason, "nobody can be signed out at an identity provider");
                Ok(None)
            }
        }
    }
}

fn connection_of(
    app: &AppContext,
    tx: &mut Tx<'_>,
    instances: &[Uuid],
    now: Timestamp,
) -> Result<Option<(Uuid, Connection)>, StoreError> {
    let option = ProviderOption::SIGN_OUT_UPSTREAM.name();
    let mut sql = Sql::new(InstanceOption::SELECT).bind(option).push(" AND i.id IN ");
    sql.add_list(instances.iter().copied().map(Value::Id));
    let mut set = HashSet::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        let InstanceOption { instance, value } = InstanceOption::read(row)?;
        if flag(value) == Some(true) {
            set.insert(instance);
        }
        Ok(())
    })?;
    let mut enabled = instances.iter().copied().filter(|instance| set.contains(instance));
    let Some(instance) = enabled.next() else { return Ok(None) };
    // a browser can be redirected to one provider only
    for other in enabled.filter(|other| *other != instance) {
        tracing::warn!(instance = %other, "only one of several sign-outs is passed on to its identity provider");
    }
    Ok(Some((instance, Connection::read(app, tx, instance, ProviderKind::OpenIdConnect, now)?)))
}
