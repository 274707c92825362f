//! The client app of a flow: whether it serves at an issuer, and whether it may still go on.

use std::sync::Arc;

use chancery_oauth::{ResponseTarget, is_registered_redirect};
use chancery_resource::{CONSOLE, Problem};
use uuid::Uuid;

use super::pending_flow::{PendingFlow, home_of};
use crate::{
    client_app::{
        Application,
        console_path::{CONSOLE_PATH, CONSOLE_RETURN},
    },
    provider::Provider,
};

impl Provider<'_> {
    /// A client app, if it serves at the requested issuer.
    pub(crate) async fn application(
        self,
        id: Uuid,
        issuing: Option<Uuid>,
    ) -> Result<Option<Arc<Application>>, Problem> {
        let application = self.applications.find(self.store, id).await?;
        Ok(application.filter(|application| {
            application.tenants.iter().any(|tenant| application.serving(tenant.facts.id, issuing).is_some())
        }))
    }

    /// The home address of a client app, as a link on error pages.
    pub async fn home_of(self, id: Uuid, issuing: Option<Uuid>) -> Result<Option<String>, Problem> {
        let Some(application) = self.application(id, issuing).await? else { return Ok(None) };
        let console = (id == CONSOLE).then(|| CONSOLE_PATH.to_owned());
        let registered = || application.login_uris.iter().find_map(|address| home_of(id, address));
        Ok(console.or_else(|| application.client_uri.clone()).or_else(registered))
    }

    /// The client app of a flow in progress; `None` if it no longer permits sign-ins or this redirect URI: an
    /// administrator's changes take effect at once.
    pub(crate) async fn application_of(
        self,
        pending: &PendingFlow,
    ) -> Result<Option<Arc<Application>>, Problem> {
        let application = self.application(pending.application, pending.issuing).await?;
        let Ok(addressing) = ResponseTarget::read(&pending.parameters) else { return Ok(None) };
        let may_go_on = |application: &Arc<Application>| {
            let leads_back = pending.device.is_some() || self.has_redirect(application, &addressing);
            application.allow_user_login
                && application.check_served().is_ok()
                && leads_back
                && (pending.device.is_none() || application.allows_devices)
        };
        Ok(application.filter(may_go_on))
    }

    /// Whether a response may be sent to the redirect URI. The console's is on this server.
    pub(crate) fn has_redirect(self, application: &Application, addressing: &ResponseTarget) -> bool {
        if application.id == CONSOLE {
            return addressing.redirect_uri.strip_prefix(&self.tokens.public_url) == Some(CONSOLE_RETURN);
        }
        let registered: Vec<&str> = application.login_uris.iter().map(String::as_str).collect();
        is_registered_redirect(&addressing.redirect_uri, &registered, application.is_native)
    }
}
