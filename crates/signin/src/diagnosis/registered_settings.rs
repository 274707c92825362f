//! The registered settings of a client app, for diagnosing a refused request.

use chancery_auth::registered_authentication;
use chancery_record::Timestamp;
use chancery_resource::Problem;
use uuid::Uuid;

use crate::{client_app::ServingTenant, provider::Provider};

/// The registered settings of a client app.
pub struct Registered {
    /// Its name.
    pub name: String,
    /// The settings against which requests are validated, as names and values.
    pub facts: Vec<(&'static str, String)>,
}

impl Provider<'_> {
    /// The registered settings of a client app at the issuer of a tenant, or of the installation; if `proves`, also
    /// those of client authentication.
    pub async fn registered(
        self,
        client: Uuid,
        issuing: Option<Uuid>,
        proves: bool,
        now: Timestamp,
    ) -> Result<Option<Registered>, Problem> {
        let Some(application) = self.applications.find_any(self.store, client).await? else {
            return Ok(None);
        };
        let is_served = |tenant: &&ServingTenant| issuing.is_none_or(|id| id == tenant.facts.id);
        let mut served = application.tenants.iter().filter(is_served).peekable();
        let is_here = served.peek().is_some();
        let needs_pkce = application.is_public || application.is_native || application.needs_pkce(served);
        let scopes: Vec<&str> = application.scopes.iter().map(|scope| scope.key.as_str()).collect();
        let mut facts = vec![
            ("client_id", application.id.to_string()),
            ("enabled", application.enabled.to_string()),
            ("signs_in_here", (application.allow_user_login && is_here).to_string()),
            ("native", application.is_native.to_string()),
            ("redirect_uri", application.login_uris.join(" ")),
            ("post_logout_redirect_uri", application.logout_uris.join(" ")),
            ("response_type", application.allowed_response_types.clone()),
            ("pkce", if needs_pkce { "required" } else { "optional" }.to_owned()),
            ("scope", scopes.join(" ")),
            ("resource", application.resources.join(" ")),
            ("device_code", application.allows_devices.to_string()),
        ];
        if proves {
            facts.extend(registered_authentication(self.store, client, issuing, now).await?);
        }
        Ok(Some(Registered { name: application.name.clone(), facts }))
    }
}
