//! The services that are served.

use std::sync::LazyLock;

use chancery_resource::Service;

static SERVICES: LazyLock<Vec<&'static Service>> = LazyLock::new(|| {
    let current = [&chancery_userstore::SERVICE, &chancery_management::SERVICE];
    current.into_iter().chain(DEPRECATED()).collect()
});
static CURRENT: LazyLock<Vec<&'static Service>> =
    LazyLock::new(|| services().iter().copied().filter(|service| !service.is_deprecated).collect());

/// The deprecated services that are served, too.
#[cfg(feature = "version-1")]
const DEPRECATED: fn() -> [&'static Service; 2] = chancery_v1::services;
#[cfg(not(feature = "version-1"))]
const DEPRECATED: fn() -> [&'static Service; 0] = || [];

/// The services that are served, in the order of the documentation.
pub fn services() -> &'static [&'static Service] {
    &SERVICES
}

/// Those of them that are not deprecated.
pub fn current_services() -> &'static [&'static Service] {
    &CURRENT
}
