//! Write access in version 1 equals that of version 2.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{Answer, Client, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{BASE, at, ids, names};
use crate::{
    each, id, pointers,
    resources::{self, related, type_id},
};

/// The path of a row, in version 1.
fn one(resource: &str, item: &Value) -> String {
    format!("{BASE}/{resource}/{}", id(item))
}

/// The body with these members added.
fn merged(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn named(body: &Value, name: &str) -> Value {
    merged(body.clone(), &json!({ "name": name }))
}

/// The body with the id of an existing row.
fn keyed(item: &Value, body: &Value) -> Value {
    merged(body.clone(), &json!({ "id": item["id"] }))
}

fn rename_patch(name: &str) -> Value {
    json!([{ "op": "replace", "path": "/name", "value": name }])
}

/// A patch that adds an item to a set.
fn add_patch(set: &str, item: &Value) -> Value {
    json!([{ "op": "add", "path": format!("/{set}/-"), "value": { "id": item["id"] } }])
}

/// A certificate file for a cert store.
fn certificate() -> String {
    let generated = rcgen::generate_simple_self_signed(vec!["signing.example.com".to_owned()]).unwrap();
    BASE64_STANDARD.encode(generated.cert.pem())
}

async fn root(world: &World) -> Value {
    world.all("ClientApp?filter=name%20eq%20%22root%22").await[0].clone()
}

/// Calls every standard write on rows of this body, and deletes them.
async fn assert_all_writes(caller: &Client, resource: &str, body: &Value) {
    let all = format!("{BASE}/{resource}");
    let (batch, upsert) = (format!("{all}/batch"), format!("{all}/createorupdate"));
    let before = caller.get(&all).await.is(200).json();
    let created = caller.post(&all, named(body, "a")).await.is(201).json();
    let own = one(resource, &created);
    assert_eq!(caller.put(&own, named(body, "b")).await.is(202).json()["name"], "b");
    assert_eq!(caller.patch(&own, rename_patch("c")).await.is(202).json()["name"], "c");
    let again = caller.post(&upsert, keyed(&created, &named(body, "d"))).await.is(201).json();
    assert_eq!((&again["id"], &again["name"]), (&created["id"], &json!("d")));
    let fresh = caller.post(&upsert, named(body, "e")).await.is(201).json();
    let two = caller.post(&batch, json!([named(body, "f"), named(body, "g")])).await.is(200).json();
    let put = json!([keyed(&two[1], &named(body, "h")), keyed(&two[0], &named(body, "i"))]);
    assert_eq!(each(&caller.put(&batch, put).await.is(200).json(), "name"), ["h", "i"]);
    let patch = json!([{ "ids": [two[0]["id"]], "patch": rename_patch("j") }]);
    assert_eq!(each(&caller.patch(&batch, patch).await.is(202).json(), "name"), ["j"]);
    let either = json!([named(body, "k"), keyed(&two[1], &named(body, "l"))]);
    let either = caller.post(&format!("{upsert}/batch"), either).await.is(200).json();
    assert_eq!((each(&either, "name"), &either[1]["id"]), (vec!["k", "l"], &two[1]["id"]));
    let gone = json!([two[0]["id"], two[1]["id"], either[0]["id"], fresh["id"]]);
    caller.delete_with(&batch, gone).await.expect(204);
    caller.delete(&own).await.expect(204);
    assert_eq!(caller.get(&all).await.is(200).json(), before);
}

/// Asserts that rows with the members `outside` are not found by the caller, and that the caller cannot create them.
/// `at` is the pointer of the refused member.
async fn assert_no_write_outside(
    world: &World,
    caller: &Client,
    (resource, body): (&str, &Value),
    (outside, at): (&Value, &str),
) {
    let all = format!("{BASE}/{resource}");
    let (batch, upsert) = (format!("{all}/batch"), format!("{all}/createorupdate"));
    let theirs = world.admin.post(&all, merged(named(body, "theirs"), outside)).await.is(201).json();
    let mine = caller.post(&all, named(body, "mine")).await.is(201).json();
    let before = world.admin.get(&all).await.is(200).json();
    let path = one(resource, &theirs);
    caller.get(&path).await.problem(404, "not-found");
    caller.put(&path, named(body, "x")).await.problem(404, "not-found");
    caller.patch(&path, rename_patch("x")).await.problem(404, "not-found");
    caller.delete(&path).await.problem(404, "not-found");
    let both = [&mine["id"], &theirs["id"]];
    let put = json!([keyed(&mine, &named(body, "x")), keyed(&theirs, &named(body, "y"))]);
    for (answer, at) in [
        (caller.put(&batch, put).await, "/1/id"),
        (caller.patch(&batch, json!([{ "ids": both, "patch": rename_patch("x") }])).await, "/0/ids/1"),
        (caller.delete_with(&batch, json!(both)).await, "/1"),
    ] {
        assert_eq!(pointers(&answer.problem(404, "not-found")), [at], "{resource}");
    }
    // the id of another owner's row gives no access to it
    let taken = keyed(&theirs, &named(body, "x"));
    for answer in [
        caller.post(&upsert, taken.clone()).await,
        caller.post(&format!("{upsert}/batch"), json!([keyed(&mine, &named(body, "y")), taken])).await,
    ] {
        assert!([400, 404, 409].contains(&answer.status.as_u16()), "{resource}: {answer:?}");
    }
    let wrong = merged(named(body, "new"), outside);
    for (base, answer) in [
        ("", caller.post(&all, wrong.clone()).await),
        ("", caller.post(&upsert, wrong.clone()).await),
        ("/1", caller.post(&batch, json!([named(body, "other"), wrong])).await),
        (
            "/1",
            caller.post(&format!("{upsert}/batch"), json!([keyed(&mine, &named(body, "x")), wrong])).await,
        ),
    ] {
        let problem = answer.problem(400, "invalid-request");
        let shown = pointers(&problem);
        let is_expected = |pointer: &&str| *pointer == base || *pointer == format!("{base}{at}");
        assert!(!shown.is_empty() && shown.iter().all(is_expected), "{resource}: {problem}");
    }
    assert_eq!(world.admin.get(&all).await.is(200).json(), before, "{resource}: nothing was done");
}

/// A caller without access to the linked root client app reads the row, sends it back, and adds and
/// removes another link; the link to the root client app is retained.
async fn assert_root_link_retained(world: &World, near: &Client, path: &str, shop: &Value) {
    let (all, _) = path.rsplit_once('/').unwrap();
    let read = near.get(path).await.is(200).json();
    assert_eq!(names(&read["clientApps"]), ["root"]);
    assert_eq!(near.put(path, read.clone()).await.is(202).json(), read);
    assert_eq!(near.post(&format!("{all}/createorupdate"), read.clone()).await.is(201).json(), read);
    for answer in [
        near.put(&format!("{all}/batch"), json!([read])).await,
        near.post(&format!("{all}/createorupdate/batch"), json!([read])).await,
    ] {
        assert_eq!(answer.is(200).json(), json!([read]));
    }
    let patched = near.patch(path, add_patch("clientApps", shop)).await.is(202).json();
    assert_eq!(names(&patched["clientApps"]), ["root", "shop"]);
    assert_eq!(near.put(path, patched.clone()).await.is(202).json(), patched);
    let emptied = merged(patched, &json!({ "clientApps": [] }));
    near.put(path, emptied).await.expect(202);
    for reader in [near, &world.admin] {
        assert_eq!(names(&reader.get(path).await.is(200).json()["clientApps"]), ["root"]);
    }
    let batch = json!([{ "ids": [read["id"]], "patch": add_patch("clientApps", shop) }]);
    let patched = near.patch(&format!("{all}/batch"), batch).await.is(202).json();
    assert_eq!(names(&patched[0]["clientApps"]), ["root", "shop"]);
    let own = merged(read, &json!({ "clientApps": ids(&[shop]) }));
    near.put(path, own).await.expect(202);
    let linked_to_both = world.admin.get(path).await.is(200).json();
    assert_eq!(names(&linked_to_both["clientApps"]), ["root", "shop"], "what is not theirs to change stays");
}

/// Every write on a row of a user store, in this order, with the status for a permitted caller.
fn write_requests(resource: &str, item: &Value, name: &str) -> Vec<(Method, String, Value, u16)> {
    let all = at(&format!("/{resource}"));
    let (item_path, batch) = (format!("{all}/{}", id(item)), format!("{all}/batch"));
    let upsert = format!("{all}/createorupdate");
    let own = |value: &str| json!({ "id": item["id"], name: value });
    let patch = json!([{ "op": "replace", "path": format!("/{name}"), "value": "p" }]);
    vec![
        (Method::POST, all, json!({ name: "a" }), 201),
        (Method::POST, batch.clone(), json!([{ name: "b" }]), 200),
        (Method::POST, upsert.clone(), json!({ name: "c" }), 201),
        (Method::POST, upsert.clone(), own("d"), 201),
        (Method::POST, format!("{upsert}/batch"), json!([own("e"), { name: "f" }]), 200),
        (Method::PUT, item_path.clone(), own("g"), 202),
        (Method::PUT, batch.clone(), json!([own("h")]), 200),
        (Method::PATCH, item_path.clone(), patch.clone(), 202),
        (Method::PATCH, batch.clone(), json!([{ "ids": [item["id"]], "patch": patch }]), 202),
        (Method::DELETE, item_path, json!(null), 204),
        // deleted by now
        (Method::DELETE, batch, json!([item["id"]]), 404),
    ]
}

async fn send(caller: &Client, method: &Method, path: &str, body: &Value) -> Answer {
    if body.is_null() {
        return caller.send(method.clone(), path, &[], Vec::new()).await;
    }
    let headers = [("content-type", "application/json")];
    caller.send(method.clone(), path, &headers, body.to_string().into_bytes()).await
}

on_both_engines! {
    async fn subscription_admin_writes_only_within_the_subscription(world: World) {
        let far = world.other_subscription("Far").await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        for (resource, body, member) in [
            ("ClaimRule", json!({ "ruleType": 0, "ruleLevel": 0 }), "subscriptionId"),
            ("IdpInstance", json!({ "idpTypeId": type_id(&world, "Google").await }), "subscriptionId"),
            ("CertStore", json!({ "certType": 1, "certificate": certificate() }), "applyToSubscriptionId"),
        ] {
            assert_all_writes(&near, resource, &body).await;
            let (outside, at) = (json!({ member: far }), format!("/{member}"));
            assert_no_write_outside(&world, &near, (resource, &body), (&outside, at.as_str())).await;
        }
    }

    async fn links_to_another_subscription_are_refused(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let far = world.other_subscription("Far").await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let (google, totp) = (type_id(&world, "Google").await, type_id(&world, "totp").await);
        let certificate = certificate();
        let mut cases = Vec::new();
        for (resource, set, target, body) in [
            ("IdpInstance", "tenants", "Tenant", json!({})),
            ("IdpInstance", "clientApps", "ClientApp", json!({})),
            ("IdpInstance", "twoFactorInstances", "MfaInstance", json!({ "idpTypeId": totp })),
            ("IdpInstance", "certStores", "CertStore", json!({ "certType": "OidcTokenSigning", "certificate": certificate, "certificateStorageFormat": "Pem" })),
            ("ClaimRule", "clientApps", "ClientApp", json!({})),
        ] {
            let item = |subscription: &Value| merged(named(&body, &format!("{resource}-{target}")), &json!({ "subscriptionId": subscription }));
            let (own, theirs) = (world.make(target, item(&subscription)).await, world.make(target, item(&far)).await);
            cases.push((resource, set, own, theirs));
        }
        for (resource, set, own, theirs) in cases {
            let all = format!("{BASE}/{resource}");
            let (batch, upsert) = (format!("{all}/batch"), format!("{all}/createorupdate"));
            let body = if resource == "ClaimRule" { json!({ "ruleType": 0, "ruleLevel": 2 }) } else { json!({ "idpTypeId": google }) };
            let body = named(&body, set);
            let created = near.post(&all, merged(body.clone(), &json!({ set: ids(&[&own]) }))).await.is(201).json();
            assert_eq!(each(&created[set], "id"), [id(&own)]);
            let before = world.admin.get(&all).await.is(200).json();
            let path = one(resource, &created);
            let new = merged(named(&body, "new"), &json!({ set: ids(&[&theirs]) }));
            let mixed = merged(keyed(&created, &body), &json!({ set: ids(&[&own, &theirs]) }));
            let alone = merged(keyed(&created, &body), &json!({ set: ids(&[&theirs]) }));
            let add = add_patch(set, &theirs);
            let (first, second) = (format!("/{set}/0/id"), format!("/{set}/1/id"));
            for (answer, expected) in [
                (near.post(&all, new.clone()).await, vec![first.clone()]),
                (near.put(&path, alone.clone()).await, vec![first.clone()]),
                (near.put(&path, mixed.clone()).await, vec![second.clone()]),
                (near.patch(&path, add.clone()).await, vec!["/0/value".to_owned()]),
                (near.post(&upsert, new.clone()).await, vec![first.clone()]),
                (near.post(&upsert, mixed.clone()).await, vec![second.clone()]),
                (near.post(&batch, json!([new])).await, vec![format!("/0{first}")]),
                (near.put(&batch, json!([mixed])).await, vec![format!("/0{second}")]),
                (near.patch(&batch, json!([{ "ids": [created["id"]], "patch": add }])).await, vec!["/0/patch/0/value".to_owned()]),
                (near.post(&format!("{upsert}/batch"), json!([alone, new])).await, vec![format!("/0{first}"), format!("/1{first}")]),
            ] {
                assert_eq!(pointers(&answer.problem(400, "invalid-request")), expected, "{resource} {set}");
            }
            assert_eq!(world.admin.get(&all).await.is(200).json(), before, "{resource} {set}: nothing was done");
        }
    }

    async fn tenant_admin_writes_only_within_the_tenant(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let sibling = world.make("Tenant", json!({ "name": "Sales", "subscriptionId": tenant["subscriptionId"] })).await;
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        let target = |tenant: &Value| json!({ "applyToTenantId": tenant["id"] });
        for (resource, body) in [
            ("ClaimRule", json!({ "ruleType": 0, "ruleLevel": 1 })),
            ("CertStore", json!({ "certType": 1, "certificate": certificate() })),
        ] {
            let body = merged(body, &target(&tenant));
            assert_all_writes(&low, resource, &body).await;
            assert_no_write_outside(&world, &low, (resource, &body), (&target(&sibling), "/applyToTenantId")).await;
            let whole = json!({ "ruleLevel": 0, "applyToTenantId": null });
            assert_no_write_outside(&world, &low, (resource, &body), (&whole, "/subscriptionId")).await;
            // nor does a row of the tenant move to another owner
            let created = low.post(&format!("{BASE}/{resource}"), named(&body, "stays")).await.is(201).json();
            let path = one(resource, &created);
            low.put(&path, merged(named(&body, "moved"), &target(&sibling))).await.problem(400, "invalid-request");
            low.put(&path, merged(named(&body, "moved"), &whole)).await.problem(409, "conflict");
            let patch = json!([{ "op": "replace", "path": "/applyToTenantId", "value": sibling["id"] }]);
            assert_eq!(pointers(&low.patch(&path, patch).await.problem(400, "invalid-request")), ["/0/value"]);
            assert_eq!(low.get(&path).await.is(200).json(), created);
        }
        // instances need a SubscriptionAdmin
        let (store, all) = (world.all("IdpInstance").await[0].clone(), format!("{BASE}/IdpInstance"));
        let body = low.get(&one("IdpInstance", &store)).await.is(200).json();
        low.put(&one("IdpInstance", &store), body.clone()).await.problem(403, "forbidden");
        low.patch(&one("IdpInstance", &store), rename_patch("x")).await.problem(403, "forbidden");
        low.delete(&one("IdpInstance", &store)).await.problem(403, "forbidden");
        for path in [all.clone(), format!("{all}/createorupdate")] {
            low.post(&path, body.clone()).await.problem(403, "forbidden");
            low.post(&format!("{path}/batch"), json!([body])).await.problem(403, "forbidden");
        }
    }

    async fn tenant_admin_writes_only_the_tenant_s_assets_and_views(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let sibling = world.make("Tenant", json!({ "name": "Sales", "subscriptionId": tenant["subscriptionId"] })).await;
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        for (resource, prefix, member, create_path, name_member) in [
            ("CustomAsset", "assets", "data", "create", "assetFileName"), ("CustomView", "views", "content", "viewtemplate/view", "viewName"),
        ] {
            let all = format!("{BASE}/{resource}");
            let (batch, upsert) = (format!("{all}/batch"), format!("{all}/createorupdate"));
            // texts that are base64 and views at once
            let body = |location: &str, value: &str| json!({ "location": location, "mimetype": "text/plain", member: value });
            let patch = json!([{ "op": "replace", "path": format!("/{member}"), "value": "Y2Nj" }]);
            let expand = |tenant: &Value| json!({ "applyToType": 3, "tenantId": tenant["id"], name_member: "SignIn", "mimetype": "text/plain", "data": "YQ==" });
            let own = format!("/{prefix}/tenant/{}/Own", id(&tenant));
            let path = format!("{all}{own}");
            low.post(&all, body(&own, "YWFh")).await.expect(201);
            assert_eq!(low.put(&path, body(&own, "YmJi")).await.is(202).json()[member], "YmJi");
            assert_eq!(low.patch(&path, patch.clone()).await.is(202).json()[member], "Y2Nj");
            assert_eq!(low.post(&upsert, body(&own, "ZGRk")).await.is(201).json()[member], "ZGRk");
            assert_eq!(low.patch(&batch, json!([{ "ids": [own], "patch": patch }])).await.is(202).json()[0][member], "Y2Nj");
            let created = low.post(&format!("{all}/{create_path}"), expand(&tenant)).await.is(201).json();
            assert_eq!(created["location"], format!("/{prefix}/tenant/{}/SignIn", id(&tenant)));
            low.delete_with(&batch, json!([created["location"]])).await.expect(204);
            low.post(&format!("{all}/{create_path}"), expand(&sibling)).await.problem(400, "invalid-request");

            let subscription = tenant["subscriptionId"].as_str().unwrap();
            for level in [format!("tenant/{}", id(&sibling)), format!("subscription/{subscription}"), "global".to_owned()] {
                let (theirs, new) = (format!("/{prefix}/{level}/Theirs"), format!("/{prefix}/{level}/New"));
                world.admin.post(&all, body(&theirs, "YWFh")).await.expect(201);
                let before = world.admin.get(&all).await.is(200).json();
                let path = format!("{all}{theirs}");
                low.get(&path).await.problem(404, "not-found");
                low.put(&path, body(&theirs, "YmJi")).await.problem(404, "not-found");
                low.patch(&path, patch.clone()).await.problem(404, "not-found");
                low.delete(&path).await.problem(404, "not-found");
                low.patch(&batch, json!([{ "ids": [own, theirs], "patch": patch }])).await.problem(404, "not-found");
                low.put(&batch, json!([body(&own, "ZWVl"), body(&theirs, "ZWVl")])).await.problem(404, "not-found");
                low.delete_with(&batch, json!([own, theirs])).await.problem(404, "not-found");
                for location in [&theirs, &new] {
                    for path in [&all, &upsert] {
                        let answer = low.post(path, body(location, "YmJi")).await;
                        assert!([400, 403, 409].contains(&answer.status.as_u16()), "{path}: {answer:?}");
                        let answer = low.post(&format!("{path}/batch"), json!([body(location, "YmJi")])).await;
                        assert!([400, 403, 409].contains(&answer.status.as_u16()), "{path}/batch: {answer:?}");
                    }
                }
                assert_eq!(world.admin.get(&all).await.is(200).json(), before, "{level}: nothing was done");
            }
            low.delete(&path).await.expect(204);
        }
    }

    /// A link needs access to the subscription of the certificate: in version 2, and in the set of a body.
    async fn certificate_links_need_write_access_to_the_relation(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let far = world.other_subscription("Far").await;
        let tenant = world.make("Tenant", json!({ "name": "T", "subscriptionId": far })).await;
        let google = type_id(&world, "Google").await;
        let instance = async |name: &str, subscription: &Value| {
            world.make("IdpInstance", json!({ "name": name, "idpTypeId": google, "subscriptionId": subscription })).await
        };
        let (ours, theirs) = (instance("ours", &subscription).await, instance("theirs", &far).await);
        let at_tenant = ("TenantAdmin", Some(id(&tenant).parse().unwrap()), None);
        let both = world.client("both", &[("SubscriptionAdmin", None, None), at_tenant]).await;
        let low = world.client_in(&far, "low", &[at_tenant]).await;
        let all = format!("{BASE}/CertStore");
        let (batch, upsert) = (format!("{all}/batch"), format!("{all}/createorupdate"));
        let body = json!({ "name": "c", "certType": 1, "certificate": certificate(), "applyToTenantId": tenant["id"] });
        let created = both.post(&all, body.clone()).await.is(201).json();
        let path = one("CertStore", &created);
        both.post(&format!("{}/idpinstances", resources::one("CertStore", &created)), related(&[&ours])).await.problem(404, "not-found");
        both.post(&format!("{}/certstores", resources::one("IdpInstance", &ours)), related(&[&created])).await.problem(400, "invalid-request");
        for (caller, target) in [(&both, &ours), (&both, &theirs), (&low, &theirs)] {
            let new = merged(body.clone(), &json!({ "idpInstances": ids(&[target]) }));
            let (existing, add) = (keyed(&created, &new), add_patch("idpInstances", target));
            for (answer, at) in [
                (caller.post(&all, new.clone()).await, "/idpInstances/0/id"),
                (caller.put(&path, new.clone()).await, "/idpInstances/0/id"),
                (caller.patch(&path, add.clone()).await, "/0/value"),
                (caller.post(&upsert, new.clone()).await, "/idpInstances/0/id"),
                (caller.post(&upsert, existing.clone()).await, "/idpInstances/0/id"),
                (caller.post(&batch, json!([new])).await, "/0/idpInstances/0/id"),
                (caller.put(&batch, json!([existing])).await, "/0/idpInstances/0/id"),
                (caller.patch(&batch, json!([{ "ids": [created["id"]], "patch": add }])).await, "/0/patch/0/value"),
                (caller.post(&format!("{upsert}/batch"), json!([existing])).await, "/0/idpInstances/0/id"),
            ] {
                if answer.status == 403 {
                    answer.problem(403, "forbidden");
                } else {
                    assert_eq!(pointers(&answer.problem(400, "invalid-request")), [at]);
                }
            }
            assert_eq!(world.admin.get(&all).await.is(200).json(), json!([created]), "nothing was done");
            for one in [&ours, &theirs] {
                assert_eq!(world.admin.get(&resources::one("IdpInstance", one)).await.is(200).json()["certStores"], json!([]));
            }
        }
        // a SubscriptionAdmin of the whole subscription may
        let whole = world.client_in(&far, "whole", &[("SubscriptionAdmin", None, None)]).await;
        let linking = merged(body.clone(), &json!({ "idpInstances": ids(&[&theirs]) }));
        for path in [&all, &upsert] {
            assert_eq!(names(&whole.post(path, linking.clone()).await.is(201).json()["idpInstances"]), ["theirs"]);
        }
        assert_eq!(names(&whole.patch(&path, add_patch("idpInstances", &theirs)).await.is(202).json()["idpInstances"]), ["theirs"]);
        let emptied = merged(body, &json!({ "idpInstances": [] }));
        assert_eq!(whole.post(&upsert, keyed(&created, &emptied)).await.is(201).json()["idpInstances"], json!([]));
        assert_eq!(names(&whole.put(&path, linking.clone()).await.is(202).json()["idpInstances"]), ["theirs"]);
        let with_foreign_instance = merged(linking, &json!({ "idpInstances": ids(&[&theirs, &ours]) }));
        assert_eq!(pointers(&whole.put(&path, with_foreign_instance).await.problem(400, "invalid-request")), ["/idpInstances/1/id"]);
        // the read body can be sent back, and hidden links are retained
        for caller in [&both, &low] {
            let read = caller.get(&path).await.is(200).json();
            assert_eq!(caller.put(&path, read.clone()).await.is(202).json(), read);
            caller.patch(&path, rename_patch("renamed")).await.expect(202);
            assert_eq!(names(&whole.get(&path).await.is(200).json()["idpInstances"]), ["theirs"]);
        }
    }

    async fn a_read_body_can_be_sent_back(world: World) {
        let (root, shop) = (root(&world).await, world.make("ClientApp", json!({ "name": "shop" })).await);
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let store = world.all("IdpInstance").await[0].clone();
        world.admin.put(&format!("{}/clientapps", resources::one("IdpInstance", &store)), related(&[&root])).await.expect(202);
        let rule = json!({ "name": "r", "ruleType": "Filter", "ruleLevel": "ClientApp", "clientApps": ids(&[&root]) });
        let rule = world.make("ClaimRule", rule).await;
        assert_root_link_retained(&world, &near, &one("IdpInstance", &store), &shop).await;
        assert_root_link_retained(&world, &near, &one("ClaimRule", &rule), &shop).await;
    }

    /// A link that may be retained may not be added.
    async fn a_client_app_with_broader_roles_is_not_linked(world: World) {
        let root = root(&world).await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        for (resource, body) in [
            ("IdpInstance", json!({ "name": "g", "idpTypeId": type_id(&world, "Google").await })), ("ClaimRule", json!({ "name": "r", "ruleType": 0, "ruleLevel": 2 })),
        ] {
            let all = format!("{BASE}/{resource}");
            let created = near.post(&all, body.clone()).await.is(201).json();
            let (path, linking) = (one(resource, &created), merged(body, &json!({ "clientApps": ids(&[&root]) })));
            for (answer, at) in [
                (near.post(&all, named(&linking, "new")).await, "/clientApps/0/id"),
                (near.put(&path, linking.clone()).await, "/clientApps/0/id"),
                (near.post(&format!("{all}/createorupdate"), keyed(&created, &linking)).await, "/clientApps/0/id"),
                (near.put(&format!("{all}/batch"), json!([keyed(&created, &linking)])).await, "/0/clientApps/0/id"),
                (near.patch(&path, add_patch("clientApps", &root)).await, "/0/value"),
            ] {
                assert_eq!(pointers(&answer.problem(400, "invalid-request")), [at], "{resource}");
            }
            assert_eq!(world.admin.get(&path).await.is(200).json(), created);
        }
    }

    async fn read_only_roles_write_nothing_in_a_store(world: World) {
        let (ada, group) = (world.user("ada").await, world.group("g").await);
        let store = ada["instanceId"].as_str().unwrap().parse().unwrap();
        let tenant = id(&world.all("Tenant").await[0]).parse().unwrap();
        let other = world.other_store("other").await;
        let far = world.other_subscription("Far").await;
        let trail = world.client("trail", &[("AuditTrailReader", None, None)]).await;
        let data = world.client("data", &[("ApplicationDataReader", None, None), ("ApplicationDataReader", None, Some(store))]).await;
        let users = world.client("users", &[("UserAdmin", None, None)]).await;
        let low = world.client("low", &[("TenantAdmin", Some(tenant), None)]).await;
        let other_store_admin = world.client("elsewhere", &[("UserStoreAdmin", None, Some(other))]).await;
        let other_subscription_admin = world.client_in(&far, "beyond", &[("SubscriptionAdmin", None, None)]).await;
        let store_admin = world.client("keeper", &[("UserStoreAdmin", None, Some(store))]).await;
        let mut more = Vec::new();
        for (path, body) in [("state", json!({ "isUserLocked": true })), ("lockout/reset", json!(null)), ("password/reset", json!({ "password": "a long new one, 7!" }))] {
            more.push((Method::POST, at(&format!("/User/{}/{path}", id(&ada))), body));
        }
        for entries in [format!("/Group/{}/GroupMetadata", id(&group)), format!("/user/{}/UserProfile", id(&ada))] {
            for end in ["", "/createorupdate"] {
                more.push((Method::POST, at(&format!("{entries}{end}")), json!({ "key": "k", "value": "v" })));
            }
        }
        // a GET that changes something
        for resource in ["User", "Group"] {
            more.push((Method::GET, at(&format!("/{resource}/synchronize")), json!(null)));
        }
        let before = [world.admin.get(&at("/User")).await.is(200).json(), world.admin.get(&at("/Group")).await.is(200).json()];
        for (caller, status, kind) in [
            (&trail, 403, "forbidden"), (&data, 403, "forbidden"), (&users, 403, "forbidden"), (&low, 403, "forbidden"),
            (&other_store_admin, 404, "not-found"), (&other_subscription_admin, 404, "not-found"),
        ] {
            for (resource, item, name) in [("User", &ada, "loginName"), ("Group", &group, "name")] {
                for (method, path, body, _) in write_requests(resource, item, name) {
                    send(caller, &method, &path, &body).await.problem(status, kind);
                }
            }
            for (method, path, body) in &more {
                send(caller, method, path, body).await.problem(status, kind);
            }
        }
        assert_eq!([world.admin.get(&at("/User")).await.is(200).json(), world.admin.get(&at("/Group")).await.is(200).json()], before);
        assert_eq!(world.all("ApplicationUser").await, json!([]), "nothing was synchronized");
        // they read within their roles, and the store's own administrator writes
        trail.get(&at("/CustomAuditTrail")).await.expect(200);
        data.get("/api/management/v2/ApplicationUser").await.expect(200);
        for (resource, item, name) in [("User", &ada, "loginName"), ("Group", &group, "name")] {
            store_admin.get(&at(&format!("/{resource}/{}", id(item)))).await.expect(200);
            for (method, path, body, status) in write_requests(resource, item, name) {
                send(&store_admin, &method, &path, &body).await.expect(status);
            }
        }
    }
}
