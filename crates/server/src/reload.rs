//! SIGHUP: reloads settings while the server runs.

use std::sync::Arc;

use chancery_resource::Scope;
use chancery_store::Mode;
use chancery_web::{App, Tls};

use crate::{
    Config, ConfigArguments, first_start,
    log::Log,
    server_context::server_context,
    start_error::{BoxError, cause_of},
};

/// The reloaded settings: the log's filter, the certificates of TLS and the root client's secret.
pub struct Reload {
    pub(crate) app: Arc<App>,
    pub(crate) tls: Option<Arc<Tls>>,
}

impl Reload {
    /// Reloads. An error is logged, and the former setting stays.
    pub async fn again(&self, arguments: &ConfigArguments, log: &Log) {
        let config = match Config::read(arguments) {
            Ok(config) => config,
            Err(error) => {
                tracing::error!(%error, "the configuration was read again and is wrong: nothing was changed");
                return;
            }
        };
        let tls = self.tls.as_ref().map_or(Ok(()), |tls| {
            config.check_tls_key()?;
            tls.read_again().map_err(Into::into)
        });
        let outcomes = [
            ("log", log.filter_by(&config.log).map_err(BoxError::from)),
            ("tls", tls),
            ("root_client_secret", self.configure_secret(&config).await),
        ];
        for (what, outcome) in outcomes {
            match outcome {
                Ok(()) => tracing::info!(what, "read again"),
                Err(error) => tracing::error!(what, %error, "read again and wrong: what was before stays"),
            }
        }
    }

    async fn configure_secret(&self, config: &Config) -> Result<(), BoxError> {
        let Some(secret) = config.root_client_secret.clone() else { return Ok(()) };
        let mut acting = server_context(&self.app.context, Scope::Everything);
        let done = self.app.store.run("Reload", Mode::Write, None, move |tx| {
            first_start::ensure(&mut acting, tx, Some(&secret)).map(drop)
        });
        done.await.map_err(cause_of)
    }
}
