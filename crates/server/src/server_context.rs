//! The server's own actions.

use std::sync::Arc;

use chancery_resource::{AppContext, Context, Scope};
use chancery_web::now;

/// The context of the server's own actions at this time.
pub fn server_context(context: &Arc<AppContext>, scope: Scope) -> Context {
    Context::of_server(context, scope, now())
}
