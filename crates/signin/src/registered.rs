//! What is registered of a client app, for who finds out why one of its requests is refused.

use chancery_auth::registered_proof;
use chancery_record::Timestamp;
use chancery_resource::Problem;
use uuid::Uuid;

use crate::{application::ServingTenant, provider::Provider};

/// What is registered of a client app.
pub struct Registered {
    /// Its name.
    pub name: String,
    /// What requests are judged by, as names and values.
    pub facts: Vec<(&'static str, String)>,
}

impl Provider<'_> {
    /// What is registered of a client app at the issuer of a tenant, or of the installation; where `proves`, also how it
    /// is set to authenticate.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn registered(
        self,
        client: Uuid,
        (issuing, proves): (Option<Uuid>, bool),
        now: Timestamp,
    ) -> Result<Option<Registered>, Problem> {
        let Some(found) = self.applications.find_any(self.store, client).await? else { return Ok(None) };
        let is_served = |tenant: &&ServingTenant| issuing.is_none_or(|id| id == tenant.facts.id);
        let mut served = found.tenants.iter().filter(is_served).peekable();
        let is_here = served.peek().is_some();
        let needs_pkce = found.is_public || found.is_native || found.needs_pkce(served);
        let scopes: Vec<&str> = found.scopes.iter().map(|scope| scope.key.as_str()).collect();
        let mut facts = vec![
            ("client_id", found.id.to_string()),
            ("enabled", found.enabled.to_string()),
            ("signs_in_here", (found.allow_user_login && is_here).to_string()),
            ("native", found.is_native.to_string()),
            ("redirect_uri", found.login_uris.join(" ")),
            ("post_logout_redirect_uri", found.logout_uris.join(" ")),
            ("response_type", found.allowed_response_types.clone()),
            ("pkce", if needs_pkce { "required" } else { "optional" }.to_owned()),
            ("scope", scopes.join(" ")),
            ("resource", found.resources.join(" ")),
            ("device_code", found.allows_devices.to_string()),
        ];
        if proves {
            facts.extend(registered_proof(self.store, client, issuing, now).await?);
        }
        Ok(Some(Registered { name: found.name.clone(), facts }))
    }
}
