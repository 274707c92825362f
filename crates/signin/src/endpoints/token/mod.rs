//! The grant types of the token endpoint.

pub mod authorization_code;
pub mod device_code;
pub mod refresh_token;
