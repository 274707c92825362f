//! Reasons for developers: refused requests of client apps, and the registered settings.

pub mod refused_requests;
pub mod registered_settings;
