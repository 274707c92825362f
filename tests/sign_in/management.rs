//! The management service, with sessions, grants and refusals that only sign-ins create.

mod subscription_isolation;
