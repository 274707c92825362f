//! The management service, version 2: one folder a resource.

pub mod application;
pub mod customer;
pub mod option;
pub mod subscription;

use chancery_resource::Service;

/// The service.
pub static SERVICE: Service = Service {
    name: "management",
    version: "v2",
    title: "Chancery Management Service",
    base: "/api/management/v2",
    operations: &[
        &customer::OPERATIONS,
        &subscription::OPERATIONS,
        option::OPERATIONS,
        application::OPERATIONS,
    ],
};
