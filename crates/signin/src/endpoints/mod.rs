//! The endpoints of the OpenID provider: requests of client apps and of browsers.

pub mod authorize;
pub mod end_session;
pub mod flow_request;
pub mod refresh_token_status;
pub mod token;
pub mod userinfo;
