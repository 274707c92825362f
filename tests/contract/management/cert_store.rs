//! Cert stores: certificates in, facts out, private keys never.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{BASE, one, related};
use crate::{each, id, pointers};

struct Made {
    pem: String,
    key: String,
    der: Vec<u8>,
}

fn make() -> Made {
    let made = rcgen::generate_simple_self_signed(vec!["signing.example.com".to_owned()]).unwrap();
    Made { pem: made.cert.pem(), key: made.signing_key.serialize_pem(), der: made.cert.der().to_vec() }
}

#[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
fn body(made: &Made, more: Value) -> Value {
    let mut body = json!({
        "name": "signing", "certType": "OidcTokenSigning",
        "certificateInput": { "format": "Pem", "data": made.pem, "privateKey": made.key },
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

on_both_engines! {
    /// Section 15: a create-only member that differs is 400 with its pointer, equal it is ignored: also one that
    /// is never shown.
    async fn an_upload_that_is_repeated_is_ignored(world: World) {
        let (made, other) = (make(), make());
        let store = world.make("CertStore", body(&made, json!({}))).await;
        let patch = async |made: &Made, more: Value| {
            let read = world.admin.get(&one("CertStore", &store)).await.is(200).json();
            let mut patch = json!({
                "certificateInput": body(made, json!({}))["certificateInput"],
                "concurrencyToken": read["concurrencyToken"],
            });
            patch.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            world.admin.patch(&one("CertStore", &store), patch).await
        };
        let changed = patch(&made, json!({ "name": "renamed" })).await.is(202).json();
        assert_eq!((&changed["name"], &changed["thumbprint"]), (&json!("renamed"), &store["thumbprint"]));
        assert_eq!(changed["certificateHasPrivateKey"], true);
        let beside = json!({ "certificate": BASE64_STANDARD.encode(&other.der) });
        for refused in [patch(&other, json!({})).await, patch(&made, beside).await] {
            assert_eq!(pointers(&refused.problem(400, "invalid-request")), ["/certificateInput"]);
        }
    }

    async fn facts_are_read_and_keys_stay(world: World) {
        let made = make();
        let store = world.make("CertStore", body(&made, json!({}))).await;
        assert_eq!(store["certificate"], BASE64_STANDARD.encode(&made.der));
        for (member, value) in [
            ("password", json!(null)), ("certificateHasPrivateKey", json!(true)), ("certificateStorageFormat", json!("Pem")),
            ("certificatePasswordProtection", json!("None")), ("applyToType", json!("Global")), ("certType", json!("OidcTokenSigning")),
        ] {
            assert_eq!(store[member], value, "{member}");
        }
        assert_eq!(store["thumbprint"].as_str().unwrap().len(), 40);
        assert!(store["validTo"].as_str().unwrap() > store["validFrom"].as_str().unwrap());
        assert!(store["subject"].as_str().unwrap().contains("CN="), "{}", store["subject"]);
        assert!(store.get("certificateInput").is_none() && store.get("privateKey").is_none());
        let path = one("CertStore", &store);
        assert_eq!(world.admin.get(&path).await.is(200).json(), store);
        // one that is absent, null or the same keeps the key
        let mut token = store["concurrencyToken"].clone();
        for certificate in [json!(null), store["certificate"].clone()] {
            let put = json!({ "name": "renamed", "certType": "OidcTokenSigning", "certificate": certificate, "concurrencyToken": token });
            let put = world.admin.put(&path, put).await.is(202).json();
            assert_eq!((&put["certificateHasPrivateKey"], &put["thumbprint"], &put["certificateStorageFormat"]), (&json!(true), &store["thumbprint"], &json!("Pem")));
            token = put["concurrencyToken"].clone();
        }
        // another one without a key has none
        let other = make();
        let put = json!({ "certificate": BASE64_STANDARD.encode(&other.der), "certificateStorageFormat": "Der", "concurrencyToken": token });
        let put = world.admin.patch(&path, put).await.is(202).json();
        assert_eq!((&put["certificateHasPrivateKey"], &put["certificate"]), (&json!(false), &json!(BASE64_STANDARD.encode(&other.der))));
        let told = world.all("CustomAuditTrail").await.to_string();
        let inside: String = made.key.lines().nth(1).unwrap().to_owned();
        assert!(!told.contains(&inside));
        let mut kept = crate::signing::texts(&world, "SELECT COALESCE(private_key, '') FROM cert_store").await;
        kept.extend(crate::signing::texts(&world, "SELECT COALESCE(current_content, '') FROM audit_entry").await);
        assert!(!kept.concat().contains(&inside));
    }

    /// Section 15: `certificateHasPrivateKey` is documented in bodies and ignored: what was sent decides.
    async fn what_a_body_says_of_its_private_key_is_ignored(world: World) {
        let made = make();
        let says = |has: bool, input: Value| body(&made, json!({ "certificateHasPrivateKey": has, "certificateInput": input }));
        let without = json!({ "format": "Pem", "data": made.pem });
        let with = json!({ "format": "Pem", "data": made.pem, "privateKey": made.key });
        let all = world.admin.post(&format!("{BASE}/CertStore/batch"), json!([says(true, without.clone()), says(false, with.clone())])).await;
        let all = all.is(200).json();
        assert_eq!([&all[0]["certificateHasPrivateKey"], &all[1]["certificateHasPrivateKey"]], [&json!(false), &json!(true)]);
        for (input, has) in [(without, false), (with, true)] {
            let store = world.make("CertStore", says(!has, input)).await;
            assert_eq!(store["certificateHasPrivateKey"], has);
            let path = one("CertStore", &store);
            let change = json!({ "name": "n", "certType": "OidcTokenSigning", "certificateHasPrivateKey": !has });
            let with_token = |store: &Value| {
                let mut change = change.clone();
                change["concurrencyToken"] = store["concurrencyToken"].clone();
                change
            };
            let put = world.admin.put(&path, with_token(&store)).await.is(202).json();
            let patched = world.admin.patch(&path, with_token(&put)).await.is(202).json();
            assert_eq!((&put["certificateHasPrivateKey"], &patched["certificateHasPrivateKey"]), (&json!(has), &json!(has)));
        }
        let document = world.anonymous.get("/openapi/management-v2.json").await.is(200).json();
        let body = &document["paths"][format!("{BASE}/CertStore")]["post"]["requestBody"]["content"]["application/json"]["schema"];
        let name = body["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        assert!(document["components"]["schemas"][name]["properties"]["certificateHasPrivateKey"].is_object(), "{name}");
    }

    /// A file is read whole, as editors and other tools leave it, and a certificate that is not meant is not taken.
    async fn a_bundle_is_read_whole(world: World) {
        let (made, other) = (make(), make());
        let mark = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let words = format!("Bag Attributes\n    friendlyName: idp\nsubject=CN = signing\n{}", made.pem);
        for text in [mark(&made.pem), words, mark(&format!("{}{}", made.pem, made.pem))] {
            for body in [
                json!({ "name": "n", "certType": "OidcTokenSigning", "certificate": BASE64_STANDARD.encode(&text), "certificateStorageFormat": "Pem" }),
                json!({ "name": "n", "certType": "OidcTokenSigning", "certificateInput": { "format": "Pem", "data": text } }),
            ] {
                assert_eq!(world.make("CertStore", body).await["certificate"], BASE64_STANDARD.encode(&made.der));
            }
        }
        let both = mark(&format!("{}{}", made.pem, other.pem));
        let body = json!({ "name": "n", "certType": "OidcTokenSigning", "certificateInput": { "format": "Pem", "data": both } });
        let problem = world.admin.post(&format!("{BASE}/CertStore"), body).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/certificateInput"]);
    }

    async fn uploads_that_are_wrong_are_refused(world: World) {
        let (made, other) = (make(), make());
        for (input, at) in [
            (json!({ "certificateInput": { "format": "Pem", "data": made.pem, "privateKey": other.key } }), "/certificateInput"),
            (json!({ "certificateInput": { "format": "Der", "data": "AAAA" } }), "/certificateInput"),
            (json!({ "certificateInput": { "format": "Jks", "data": "AAAA" } }), "/certificateInput"),
            (json!({ "certificateInput": { "data": "not base64!" } }), "/certificateInput"),
            (json!({ "certificateInput": null }), "/certificate"),
            (json!({ "certificateInput": null, "certificate": "AAAA" }), "/certificate"),
            (json!({ "certType": "Default", "subscriptionId": world.all("Subscription").await[0]["id"] }), "/subscriptionId"),
        ] {
            let problem = world.admin.post(&format!("{BASE}/CertStore"), body(&made, input)).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [at]);
        }
        assert_eq!(world.all("CertStore").await, json!([]));
    }

    /// PKCS #12 of the kind that tools make today, and the wrong password.
    async fn a_pkcs12_file_needs_its_password(world: World) {
        let file = include_bytes!("../../../crates/certificate/testdata/modern-p256.p12");
        let input = |password: &str| json!({
            "name": "p12", "certType": "AuditTrailSigning", "certificate": BASE64_STANDARD.encode(file), "password": password,
        });
        let problem = world.admin.post(&format!("{BASE}/CertStore"), input("not it")).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/certificate"]);
        let made = world.make("CertStore", input(PASSWORD)).await;
        assert_eq!((&made["certificatePasswordProtection"], &made["password"], &made["certificateHasPrivateKey"]), (&json!("Password"), &json!(null), &json!(true)));
        assert_eq!((&made["subscriptionId"], &made["certificateStorageFormat"]), (&json!(null), &json!("Pkcs12")));
    }

    /// Opening a file can take seconds: only so many are opened at once.
    async fn a_call_opens_only_so_many_files(world: World) {
        let file = include_bytes!("../../../crates/certificate/testdata/modern-p256.p12");
        let one = json!({
            "name": "p12", "certType": "AuditTrailSigning", "certificate": BASE64_STANDARD.encode(file), "password": PASSWORD,
        });
        let batch = |count: usize| json!(vec![&one; count]);
        let path = format!("{BASE}/CertStore/batch");
        world.admin.post(&path, batch(33)).await.problem(413, "payload-too-large");
        let made = world.admin.post(&path, batch(2)).await.is(200).json();
        assert_eq!(made.as_array().unwrap().len(), 2);
    }

    async fn look_ups_are_of_what_is_assigned(world: World) {
        let (tenant, store) = (world.all("Tenant").await[0].clone(), world.all("IdpInstance").await[0].clone());
        let subscription = tenant["subscriptionId"].as_str().unwrap();
        let for_tenant = world.make("CertStore", body(&make(), json!({ "name": "t", "applyToTenantId": tenant["id"] }))).await;
        let for_all = world.make("CertStore", body(&make(), json!({ "name": "s", "applyToSubscriptionId": subscription }))).await;
        assert_eq!((&for_tenant["applyToType"], &for_all["applyToType"]), (&json!("Tenant"), &json!("Subscription")));
        world.admin.put(&format!("{}/idpinstances", one("CertStore", &for_all)), related(&[&store])).await.expect(202);
        for (path, names) in [
            ("CertStore/type/oidctokensigning".to_owned(), vec!["t", "s"]), ("CertStore/type/Default".to_owned(), vec![]),
            (format!("CertStore/type/OidcTokenSigning/tenant/{}", id(&tenant)), vec!["t"]),
            (format!("CertStore/type/OidcTokenSigning/subscription/{subscription}"), vec!["s"]),
            (format!("CertStore/type/OidcTokenSigning/idpinstance/{}", id(&store)), vec!["s"]),
        ] {
            assert_eq!(each(&world.all(&path).await, "name"), names, "{path}");
        }
        world.admin.get(&format!("{BASE}/CertStore/type/Nothing")).await.problem(400, "invalid-request");
        let shown = world.admin.get(&one("IdpInstance", &store)).await.is(200).json();
        assert_eq!(each(&shown["certStores"], "name"), ["s"]);
        let low = world.client("low", &[("TenantAdmin", Some(id(&tenant).parse().unwrap()), None)]).await;
        assert_eq!(each(&low.get(&format!("{BASE}/CertStore")).await.is(200).json(), "name"), ["t"]);
        low.post(&format!("{BASE}/CertStore"), body(&make(), json!({ "certType": "AuditTrailSigning" }))).await.problem(400, "invalid-request");
        low.post(&format!("{BASE}/CertStore"), body(&make(), json!({ "name": "mine", "applyToTenantId": tenant["id"] }))).await.expect(201);
    }
}

/// The password of the files that tests use.
const PASSWORD: &str = "secret";
