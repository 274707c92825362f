//! Cert stores: uploads are parsed, private keys are never returned.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{BASE, one, related};
use crate::{each, id, pointers};

struct SelfSigned {
    pem: String,
    key: String,
    der: Vec<u8>,
}

fn self_signed() -> SelfSigned {
    let generated = rcgen::generate_simple_self_signed(vec!["signing.example.com".to_owned()]).unwrap();
    SelfSigned {
        pem: generated.cert.pem(),
        key: generated.signing_key.serialize_pem(),
        der: generated.cert.der().to_vec(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is made for this")]
fn body(generated: &SelfSigned, more: Value) -> Value {
    let mut body = json!({
        "name": "signing", "certType": "OidcTokenSigning",
        "certificateInput": { "format": "Pem", "data": generated.pem, "privateKey": generated.key },
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

on_both_engines! {
    /// Section 15: a create-only member that differs is 400 with its pointer, an equal one is ignored: also one
    /// that is never returned.
    async fn an_upload_that_is_repeated_is_ignored(world: World) {
        let (generated, other) = (self_signed(), self_signed());
        let store = world.make("CertStore", body(&generated, json!({}))).await;
        let patch = async |generated: &SelfSigned, more: Value| {
            let read = world.admin.get(&one("CertStore", &store)).await.is(200).json();
            let mut patch = json!({
                "certificateInput": body(generated, json!({}))["certificateInput"],
                "concurrencyToken": read["concurrencyToken"],
            });
            patch.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            world.admin.patch(&one("CertStore", &store), patch).await
        };
        let changed = patch(&generated, json!({ "name": "renamed" })).await.is(202).json();
        assert_eq!((&changed["name"], &changed["thumbprint"]), (&json!("renamed"), &store["thumbprint"]));
        assert_eq!(changed["certificateHasPrivateKey"], true);
        let with_other = json!({ "certificate": BASE64_STANDARD.encode(&other.der) });
        for refused in [patch(&other, json!({})).await, patch(&generated, with_other).await] {
            assert_eq!(pointers(&refused.problem(400, "invalid-request")), ["/certificateInput"]);
        }
    }

    /// - Effect of `CertStore.certificateStorageFormat`: The upload is read as this format.
    async fn certificate_metadata_is_parsed_and_the_key_is_retained(world: World) {
        let generated = self_signed();
        let store = world.make("CertStore", body(&generated, json!({}))).await;
        assert_eq!(store["certificate"], BASE64_STANDARD.encode(&generated.der));
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
        // the key is retained when the certificate is absent, null or equal
        let mut token = store["concurrencyToken"].clone();
        for certificate in [json!(null), store["certificate"].clone()] {
            let put = json!({ "name": "renamed", "certType": "OidcTokenSigning", "certificate": certificate, "concurrencyToken": token });
            let put = world.admin.put(&path, put).await.is(202).json();
            assert_eq!((&put["certificateHasPrivateKey"], &put["thumbprint"], &put["certificateStorageFormat"]), (&json!(true), &store["thumbprint"], &json!("Pem")));
            token = put["concurrencyToken"].clone();
        }
        // another certificate without a key clears it
        let other = self_signed();
        let put = json!({ "certificate": BASE64_STANDARD.encode(&other.der), "certificateStorageFormat": "Der", "concurrencyToken": token });
        let put = world.admin.patch(&path, put).await.is(202).json();
        assert_eq!((&put["certificateHasPrivateKey"], &put["certificate"]), (&json!(false), &json!(BASE64_STANDARD.encode(&other.der))));
        // the file is read as the format that is announced
        let upload = |format: &str| {
            let file = BASE64_STANDARD.encode(&generated.pem);
            json!({ "name": "n", "certType": "OidcTokenSigning", "certificate": file, "certificateStorageFormat": format })
        };
        world.admin.post(&format!("{BASE}/CertStore"), upload("Der")).await.problem(400, "invalid-request");
        world.admin.post(&format!("{BASE}/CertStore"), upload("Pem")).await.expect(201);
        let trail = world.all("CustomAuditTrail").await.to_string();
        let key_line: String = generated.key.lines().nth(1).unwrap().to_owned();
        assert!(!trail.contains(&key_line));
        let mut stored = crate::signing::texts(&world, "SELECT COALESCE(private_key, '') FROM cert_store").await;
        stored.extend(crate::signing::texts(&world, "SELECT COALESCE(current_content, '') FROM audit_entry").await);
        assert!(!stored.concat().contains(&key_line));
    }

    /// Section 15: `certificateHasPrivateKey` is documented in bodies and ignored: the uploaded data decides.
    async fn has_private_key_in_a_body_is_ignored(world: World) {
        let generated = self_signed();
        let upload = |has: bool, input: Value| body(&generated, json!({ "certificateHasPrivateKey": has, "certificateInput": input }));
        let without = json!({ "format": "Pem", "data": generated.pem });
        let with = json!({ "format": "Pem", "data": generated.pem, "privateKey": generated.key });
        let all = world.admin.post(&format!("{BASE}/CertStore/batch"), json!([upload(true, without.clone()), upload(false, with.clone())])).await;
        let all = all.is(200).json();
        assert_eq!([&all[0]["certificateHasPrivateKey"], &all[1]["certificateHasPrivateKey"]], [&json!(false), &json!(true)]);
        for (input, has) in [(without, false), (with, true)] {
            let store = world.make("CertStore", upload(!has, input)).await;
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

    /// A bundle may have the text of other tools around it; two different certificates are refused.
    ///
    /// - Effect of `CertStore.certificateInput`: The upload is taken in parts: certificate, private key and password.
    async fn a_bundle_is_read_whole(world: World) {
        let (generated, other) = (self_signed(), self_signed());
        let mark = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let words = format!("Bag Attributes\n    friendlyName: idp\nsubject=CN = signing\n{}", generated.pem);
        for text in [mark(&generated.pem), words, mark(&format!("{}{}", generated.pem, generated.pem))] {
            for body in [
                json!({ "name": "n", "certType": "OidcTokenSigning", "certificate": BASE64_STANDARD.encode(&text), "certificateStorageFormat": "Pem" }),
                json!({ "name": "n", "certType": "OidcTokenSigning", "certificateInput": { "format": "Pem", "data": text } }),
            ] {
                assert_eq!(world.make("CertStore", body).await["certificate"], BASE64_STANDARD.encode(&generated.der));
            }
        }
        let both = mark(&format!("{}{}", generated.pem, other.pem));
        let body = json!({ "name": "n", "certType": "OidcTokenSigning", "certificateInput": { "format": "Pem", "data": both } });
        let problem = world.admin.post(&format!("{BASE}/CertStore"), body).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/certificateInput"]);
    }

    async fn invalid_uploads_are_refused(world: World) {
        let (generated, other) = (self_signed(), self_signed());
        for (input, at) in [
            (json!({ "certificateInput": { "format": "Pem", "data": generated.pem, "privateKey": other.key } }), "/certificateInput"),
            (json!({ "certificateInput": { "format": "Der", "data": "AAAA" } }), "/certificateInput"),
            (json!({ "certificateInput": { "format": "Jks", "data": "AAAA" } }), "/certificateInput"),
            (json!({ "certificateInput": { "data": "not base64!" } }), "/certificateInput"),
            (json!({ "certificateInput": null }), "/certificate"),
            (json!({ "certificateInput": null, "certificate": "AAAA" }), "/certificate"),
            (json!({ "certType": "Default", "subscriptionId": world.all("Subscription").await[0]["id"] }), "/subscriptionId"),
        ] {
            let problem = world.admin.post(&format!("{BASE}/CertStore"), body(&generated, input)).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [at]);
        }
        assert_eq!(world.all("CertStore").await, json!([]));
    }

    /// A PKCS #12 file of current tools, and the wrong password.
    ///
    /// - Effect of `CertStore.certificatePasswordProtection`: It shows whether the uploaded file was protected by a password.
    /// - Effect of `CertStore.password`: The password opens the uploaded file.
    async fn a_pkcs12_file_needs_its_password(world: World) {
        let file = include_bytes!("../../../crates/certificate/testdata/modern-p256.p12");
        let input = |password: &str| json!({
            "name": "p12", "certType": "AuditTrailSigning", "certificate": BASE64_STANDARD.encode(file), "password": password,
        });
        let problem = world.admin.post(&format!("{BASE}/CertStore"), input("not it")).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/certificate"]);
        let created = world.make("CertStore", input(PASSWORD)).await;
        assert_eq!((&created["certificatePasswordProtection"], &created["password"], &created["certificateHasPrivateKey"]), (&json!("Password"), &json!(null), &json!(true)));
        assert_eq!((&created["subscriptionId"], &created["certificateStorageFormat"]), (&json!(null), &json!("Pkcs12")));
    }

    /// Opening a file can take seconds: a batch has a bound.
    async fn a_call_opens_a_bounded_number_of_files(world: World) {
        let file = include_bytes!("../../../crates/certificate/testdata/modern-p256.p12");
        let one = json!({
            "name": "p12", "certType": "AuditTrailSigning", "certificate": BASE64_STANDARD.encode(file), "password": PASSWORD,
        });
        let batch = |count: usize| json!(vec![&one; count]);
        let path = format!("{BASE}/CertStore/batch");
        world.admin.post(&path, batch(33)).await.problem(413, "payload-too-large");
        let created = world.admin.post(&path, batch(2)).await.is(200).json();
        assert_eq!(created.as_array().unwrap().len(), 2);
    }

    async fn look_ups_return_assigned_certificates(world: World) {
        let (tenant, store) = (world.all("Tenant").await[0].clone(), world.all("IdpInstance").await[0].clone());
        let subscription = tenant["subscriptionId"].as_str().unwrap();
        let for_tenant = world.make("CertStore", body(&self_signed(), json!({ "name": "t", "applyToTenantId": tenant["id"] }))).await;
        let for_all = world.make("CertStore", body(&self_signed(), json!({ "name": "s", "applyToSubscriptionId": subscription }))).await;
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
        low.post(&format!("{BASE}/CertStore"), body(&self_signed(), json!({ "certType": "AuditTrailSigning" }))).await.problem(400, "invalid-request");
        low.post(&format!("{BASE}/CertStore"), body(&self_signed(), json!({ "name": "mine", "applyToTenantId": tenant["id"] }))).await.expect(201);
    }
}

/// The password of the files that tests use.
const PASSWORD: &str = "secret";
