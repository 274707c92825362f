//! The OpenAPI documents: a change of the interface is a visible difference.

use chancery::services;
use chancery_testkit::on_both_engines;

#[test]
fn are_as_they_were() {
    for service in services() {
        let document = chancery_web::document(service);
        insta::assert_snapshot!(
            format!("{}-{}", service.name, service.version),
            serde_json::to_string_pretty(&document).unwrap()
        );
    }
}

on_both_engines! {
    async fn are_served_to_everybody(world: World) {
        for name in ["userstore-v2", "management-v2"] {
            let document = world.anonymous.get(&format!("/openapi/{name}.json")).await.is(200).json();
            assert_eq!(document["openapi"], "3.1.0");
        }
        let page = world.anonymous.get("/openapi").await.is(200);
        assert!(page.header("content-security-policy").is_some());
        world.anonymous.get("/openapi/nothing.json").await.problem(404, "not-found");
        let kind = world.anonymous.get("/problems/concurrency-conflict").await.is(200).json();
        assert_eq!(kind["status"], 409);
    }
}
