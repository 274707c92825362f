//! Signing out at the provider, too (OpenID Connect RP-Initiated Logout 1.0).

use std::sync::Arc;

use chancery_federation::Kind;
use chancery_management::idp_instance::connection::{Connection, end_session_endpoint};
use chancery_oauth::with_query;
use chancery_record::{Timestamp, Value};
use chancery_resource::{AppContext, Problem, StoreError, Tx};
use chancery_store::Mode;
use uuid::Uuid;

use crate::{
    end_session::SIGNED_OUT,
    provider::{Provider, Visit},
};

const PROVIDER: &str =
    "SELECT idp_type FROM idp_instance WHERE id = ?1 AND is_active AND store_name_key IS NULL";

impl Provider<'_> {
    /// Where a browser goes to sign out at the provider by which its person signed in, if the instance has `SignOutUpstream`; `state`
    /// is to be added. A provider that does not say where only leaves a line in the log: here the person is signed out.
    ///
    /// # Errors
    /// Those of the store.
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
        match end_session_endpoint(self.asking(visit.now), connection).await {
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
    let mut found = None;
    for instance in instances {
        let kind =
            tx.one(PROVIDER, &[Value::from(*instance)], |row| Ok(Kind::named(row.text(0)?)))?.flatten();
        let Some(kind) = kind else { continue };
        let connection = Connection::read(app, tx, (*instance, kind), now)?;
        match &found {
            _ if !connection.signs_out_upstream => {}
            None => found = Some((*instance, connection)),
            // a browser is led to one provider
            Some(_) => {
                tracing::warn!(%instance, "of several sign-outs one is passed on to its identity provider");
            }
        }
    }
    Ok(found)
}
