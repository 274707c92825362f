//! The management service, version 2: one folder a resource.

pub mod application;
pub mod customer;
pub mod option;

use chancery_resource::Service;

/// The service.
pub static SERVICE: Service = Service {
    name: "management",
    version: "v2",
    title: "Chancery Management Service",
    base: "/api/management/v2",
    operations: &[&customer::OPERATIONS, option::OPERATIONS, application::OPERATIONS],
};
