//! The registered authentication of a client app, for logs about rejected requests.

use chancery_record::Timestamp;
use chancery_store::{Error, Store};
use uuid::Uuid;

use crate::client::{ClientQuery, find};

/// The registered authentication of a client app, as names and values: no secret, nor anything derived from one.
pub async fn registered_authentication(
    store: &Store,
    client: Uuid,
    tenant: Option<Uuid>,
    now: Timestamp,
) -> Result<Vec<(&'static str, String)>, Error> {
    let query = ClientQuery { tenant, ..ClientQuery::default() };
    let (client_app, _) = find(store, &client.to_string(), query, now).await?;
    let Some(app) = client_app else { return Ok(Vec::new()) };
    let current = app.secrets.iter().filter(|secret| secret.is_current(now)).count();
    Ok(vec![
        ("gets_tokens_here", app.enabled.to_string()),
        ("public", app.is_public.to_string()),
        ("token_endpoint_auth_method", app.configuration.method.name().to_owned()),
        ("secrets", current.to_string()),
        ("expired_secrets", (app.secrets.len() - current).to_string()),
        ("usable_key_sets", app.key_sets.len().to_string()),
        ("client_credentials", app.is_allowed.to_string()),
    ])
}
