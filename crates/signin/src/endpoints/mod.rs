//! The endpoints of the OpenID provider: requests of client apps and of browsers.

pub mod authorize;
mod device_authorization;
pub mod end_session;
pub mod flow_request;
mod introspect;
pub mod presented_refresh_token;
mod revoke;
pub mod token;
pub mod userinfo;
