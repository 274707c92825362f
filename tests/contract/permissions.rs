//! Every operation refuses callers without a permit, and admits those with one.

use chancery::services;
use chancery_resource::{Method, Op, Permit, Reply, Service};
use chancery_testkit::{Client, on_both_engines};

use crate::roles::callers;

const UNKNOWN_ID: &str = "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f";

/// Calls an operation with parameters of no row: refusals come before the look-up.
pub async fn call(client: &Client, service: &Service, op: &Op, store: &str) -> u16 {
    let path = format!("{}{}", service.base, op.path).replace("{userstore}", store);
    let mut address = String::new();
    for (index, part) in path.split(['{', '}']).enumerate() {
        let number = if op.path.contains("CustomAuditTrail") { "1" } else { UNKNOWN_ID };
        address.push_str(if index % 2 == 0 { part } else { number });
    }
    let method = match op.method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Patch => http::Method::PATCH,
        Method::Delete => http::Method::DELETE,
    };
    if op.reply == Reply::Events {
        return client.status(&address).await;
    }
    let body = if op.takes_body() { b"{}".to_vec() } else { Vec::new() };
    client.send(method, &address, &[("content-type", "application/json")], body).await.status.as_u16()
}

/// The lowest role of a permit.
fn good_role(permit: Permit) -> &'static str {
    match permit {
        Permit::UserStore | Permit::Administrator | Permit::Oneself => "UserStoreAdmin",
        Permit::UserStoreAudit | Permit::Audit => "AuditTrailReader",
        Permit::SystemAdmin => "SystemAdmin",
        Permit::CustomerAdmin => "CustomerAdmin",
        Permit::SubscriptionAdmin => "SubscriptionAdmin",
        Permit::TenantAdmin | Permit::TenantMember | Permit::SignInRecord => "TenantAdmin",
        Permit::ApplicationData => "ApplicationDataReader",
        // operations about oneself need no role: see scim/me.rs
        Permit::Person | Permit::Public => "",
    }
}

on_both_engines! {
    async fn of_every_operation(world: World) {
        let (good, wrong, other_store) = callers(&world).await;
        for service in services() {
            for op in service.all() {
                let name = op.name;
                if op.permit == Permit::Public {
                    let status = call(&world.anonymous, service, op, "default").await;
                    assert!(![401, 403, 404, 405].contains(&status) && status < 500, "{name}: anyone answered {status}");
                    continue;
                }
                assert_eq!(call(&world.anonymous, service, op, "default").await, 401, "{name}: anonymous");
                // a caller's own resources need no role, and unknown ones have no owner
                let refused = if op.permit == Permit::Oneself { 404 } else { 403 };
                assert_eq!(call(&wrong, service, op, "default").await, refused, "{name}: wrong role");
                let expected = match op.permit {
                    Permit::UserStore | Permit::Oneself => &[404][..],
                    // a list is empty to them, or the same for every administrator
                    Permit::ApplicationData | Permit::Administrator => &[200, 404],
                    _ => &[403],
                };
                let status = call(&other_store, service, op, "default").await;
                assert!(expected.contains(&status), "{name}: right role elsewhere answered {status}");
                for role in [good_role(op.permit), "SystemAdmin"] {
                    let status = call(&good[role], service, op, "default").await;
                    assert!(![401, 403, 405].contains(&status) && status < 500, "{name}: {role} answered {status}");
                }
            }
        }
    }

    async fn a_store_s_admin_reaches_that_store_alone(world: World) {
        let (_, _, other_store) = callers(&world).await;
        other_store.get("/api/userstore/v2/other/administration/User").await.expect(200);
        other_store.get("/api/userstore/v2/default/administration/User").await.problem(404, "not-found");
        other_store.get("/api/userstore/v2/none/administration/User").await.problem(404, "not-found");
    }
}
