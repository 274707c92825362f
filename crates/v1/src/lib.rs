//! Version 1 of both services, which is deprecated: the operations and resources of version 2 in other
//! representations, without rules of its own. To remove it, remove this folder, its line in `server` and its
//! feature.

mod form;
mod json_patch;
mod management;
mod patch;
mod pattern;
mod special;
mod upsert;
mod userstore;

use chancery_resource::Service;

/// The services.
pub fn services() -> [&'static Service; 2] {
    [&userstore::SERVICE, &management::SERVICE]
}
