//! The management service, version 1.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{BASE, ids, names};
use crate::{each, id, pointers, resources::type_id};

/// The path of a row, in version 1.
fn one(resource: &str, item: &Value) -> String {
    format!("{BASE}/{resource}/{}", id(item))
}

on_both_engines! {
    /// Version 1 has no member for the format of a file.
    async fn the_certificate_format_is_detected(world: World) {
        let (body, key) = crate::certificate::body(&rcgen::PKCS_ECDSA_P256_SHA256, 2080, &json!({}));
        assert!(!key.serialize_pem().is_empty());
        let pem = body["certificateInput"]["data"].as_str().unwrap();
        let der: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        let pfx = include_bytes!("../../../crates/certificate/testdata/modern-p256.p12");
        let files = [BASE64_STANDARD.encode(pem), der, BASE64_STANDARD.encode(pfx)];
        let path = format!("{BASE}/CertStore");
        for (index, (file, format)) in files.iter().zip(["Pem", "Der", "Pkcs12"]).enumerate() {
            let upload = json!({ "name": format!("c{index}"), "certType": 0, "certificate": file, "password": "secret" });
            let created = world.admin.post(&path, upload).await.is(201).json();
            assert_eq!((&created["certType"], &created["applyToType"], &created["password"]), (&json!(0), &json!(0), &json!(null)));
            let whole = world.admin.get(&crate::resources::one("CertStore", &created)).await.is(200).json();
            assert_eq!(whole["certificateStorageFormat"], format);
            // sending the read body back changes nothing
            world.admin.put(&one("CertStore", &created), created.clone()).await.expect(202);
        }
    }

    /// B10: an upload without a target, with several subscriptions, is refused without naming a
    /// member that version 1 does not have.
    async fn an_upload_without_a_target_gets_an_error_in_version_1_terms(world: World) {
        world.other_subscription("elsewhere").await;
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["a".into()]).unwrap().self_signed(&key).unwrap();
        let upload = json!({ "name": "c", "certType": 1, "certificate": BASE64_STANDARD.encode(certificate.pem()) });
        let problem = world.admin.post(&format!("{BASE}/CertStore"), upload.clone()).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), [""], "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("Name what it applies to"), "{problem}");
        let problem = world.admin.post("/api/management/v2/CertStore", json!({
            "name": "c", "certType": "OidcTokenSigning", "certificate": upload["certificate"], "certificateStorageFormat": "Pem",
        })).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/subscriptionId"]);
    }

    /// B10: the successor of a path with a number has the name that version 2 accepts.
    async fn successor_links_use_version_2_names(world: World) {
        let instance = world.all("IdpInstance").await[0].clone();
        for type_name in ["0", "IdpInstance"] {
            let path = format!("{BASE}/Option/type/{type_name}/ref/{}", crate::id(&instance));
            let answer = world.admin.get(&path).await.is(200);
            let link = answer.header("link").unwrap();
            let next = link.trim_start_matches('<').split('>').next().unwrap();
            world.admin.get(next).await.expect(200);
            assert!(next.contains("/type/IdpInstance/"), "{link}");
        }
        let answer = world.admin.get(&format!("{BASE}/CertStore/type/1")).await;
        let link = answer.header("link").unwrap();
        assert!(link.contains("/type/OidcTokenSigning>"), "{link}");
    }

    async fn enumerations_are_numbers(world: World) {
        let all = format!("{BASE}/ClaimRule");
        let body = json!({ "name": "r", "ruleType": 1, "ruleLevel": "subscription", "destination": 2, "transformTarget": "ClaimValue" });
        let created = world.admin.post(&all, body).await.is(201).json();
        for (member, value) in [("ruleType", 1), ("ruleLevel", 0), ("destination", 2), ("filterTarget", 0), ("transformTarget", 1), ("priority", 0)] {
            assert_eq!(created[member], value, "{member}");
        }
        for hidden in ["inputSource", "disclosureMode", "concurrencyToken"] {
            assert!(created.get(hidden).is_none(), "{hidden} in {created}");
        }
        let new = world.admin.get(&crate::resources::one("ClaimRule", &created)).await.is(200).json();
        assert_eq!((&new["ruleType"], &new["destination"], &new["inputSource"]), (&json!("Transform"), &json!("AccessToken"), &json!("All")));
        for wrong in [json!(4), json!(-1), json!("Guess"), json!(true), json!("1")] {
            let body = json!({ "name": "r", "ruleType": wrong, "ruleLevel": 0 });
            assert_eq!(pointers(&world.admin.post(&all, body).await.problem(400, "invalid-request")), ["/ruleType"], "{wrong}");
        }
        let patch = json!([{ "op": "test", "path": "/destination", "value": 2 }, { "op": "replace", "path": "/destination", "value": "None" }]);
        assert_eq!(world.admin.patch(&one("ClaimRule", &created), patch).await.is(202).json()["destination"], 0);
        assert_eq!(world.admin.get(&all).await.is(200).json()[0]["destination"], 0);
    }

    async fn rules_list_their_client_apps(world: World) {
        let (a, b) = (world.make("ClientApp", json!({ "name": "a" })).await, world.make("ClientApp", json!({ "name": "b" })).await);
        let body = json!({ "name": "r", "ruleType": 0, "ruleLevel": 2, "clientApps": ids(&[&a, &b]) });
        let created = world.admin.post(&format!("{BASE}/ClaimRule"), body).await.is(201).json();
        assert_eq!(names(&created["clientApps"]), ["a", "b"]);
        let path = one("ClaimRule", &created);
        let put = json!({ "name": "r", "ruleType": 0, "ruleLevel": 2, "clientApps": ids(&[&b]) });
        assert_eq!(names(&world.admin.put(&path, put).await.is(202).json()["clientApps"]), ["b"]);
        assert_eq!(names(&world.admin.put(&path, json!({ "name": "s" })).await.is(202).json()["clientApps"]), ["b"]);
    }

    async fn cert_stores_are_looked_up_by_type_number_or_name(world: World) {
        let generated = rcgen::generate_simple_self_signed(vec!["signing.example.com".to_owned()]).unwrap();
        let input = json!({ "format": "Pem", "data": generated.cert.pem(), "privateKey": generated.signing_key.serialize_pem() });
        let store = world.make("CertStore", json!({ "name": "signing", "certType": "OidcTokenSigning", "certificateInput": input })).await;
        let shown = world.admin.get(&one("CertStore", &store)).await.is(200).json();
        assert_eq!((&shown["certType"], &shown["applyToType"], &shown["password"]), (&json!(1), &json!(0), &json!(null)));
        assert!(shown.get("certificateStorageFormat").is_none() && shown.get("subscriptionId").is_none());
        for kind in ["1", "OidcTokenSigning", "oidctokensigning"] {
            let matches = world.admin.get(&format!("{BASE}/CertStore/type/{kind}")).await.is(200).json();
            assert!(matches.as_array().unwrap().contains(&shown), "{kind}: {matches}");
        }
        let other = world.admin.get(&format!("{BASE}/CertStore/type/2")).await.is(200).json();
        assert!(!other.as_array().unwrap().contains(&shown));
        world.admin.get(&format!("{BASE}/CertStore/type/9")).await.problem(400, "invalid-request");
        // the key is not shown here, and is retained
        let put = world.admin.put(&one("CertStore", &store), json!({ "name": "other", "certType": 1 })).await.is(202).json();
        assert_eq!((&put["name"], &put["thumbprint"]), (&json!("other"), &shown["thumbprint"]));
        let new = world.admin.get(&crate::resources::one("CertStore", &store)).await.is(200).json();
        assert_eq!((&new["certificateHasPrivateKey"], &new["certificateStorageFormat"]), (&json!(true), &json!("Pem")));
    }

    async fn types_are_looked_up_by_name(world: World) {
        for (name, number) in [("Google", 0), ("totp", 1)] {
            let kind = world.admin.get(&format!("{BASE}/IdpType/name/{name}")).await.is(200).json();
            assert_eq!((&kind["name"], &kind["providerType"], &kind["twoFactorInstances"]), (&json!(name), &json!(number), &json!([])));
            assert!(kind.get("concurrencyToken").is_none() && kind.get("mfaInstances").is_none());
        }
        world.admin.get(&format!("{BASE}/IdpType/name/Nothing")).await.problem(404, "not-found");
        for (name, number) in [("one", json!(0)), ("two", json!("identityprovider"))] {
            let body = json!({ "name": name, "providerType": number, "factoryType": "OpenIdConnect" });
            assert_eq!(world.admin.post(&format!("{BASE}/IdpType"), body).await.is(201).json()["providerType"], 0);
        }
        let body = json!({ "name": "three", "providerType": 2, "factoryType": "OpenIdConnect" });
        assert_eq!(pointers(&world.admin.post(&format!("{BASE}/IdpType"), body).await.problem(400, "invalid-request")), ["/providerType"]);
    }

    async fn instances_retain_icon_and_links(world: World) {
        let (kind, tenant) = (type_id(&world, "Google").await, world.all("Tenant").await[0].clone());
        let factor = world.make("MfaInstance", json!({ "name": "Codes", "idpTypeId": type_id(&world, "totp").await })).await;
        let body = json!({
            "name": "g", "idpTypeId": kind, "icon": "google.png", "treatSecondFactorClaimsAsConfirmed": true,
            "tenants": ids(&[&tenant]), "twoFactorInstances": ids(&[&factor]), "metadata": [{ "key": "x", "value": "y" }],
        });
        let created = world.admin.post(&format!("{BASE}/IdpInstance"), body).await.is(201).json();
        assert_eq!((&created["icon"], &created["treatSecondFactorClaimsAsConfirmed"]), (&json!("google.png"), &json!(true)));
        assert_eq!((each(&created["twoFactorInstances"], "name"), &created["metadata"]), (vec!["Codes"], &json!([])));
        assert_eq!(created["tenants"], json!([{ "id": tenant["id"], "name": tenant["name"] }]));
        assert!(created.get("mfaInstances").is_none() && created.get("concurrencyToken").is_none());
        let (old, new) = (one("IdpInstance", &created), crate::resources::one("IdpInstance", &created));
        let shown = world.admin.get(&new).await.is(200).json();
        assert_eq!(shown["icon"], "google.png");
        assert_eq!((&shown["treatMfaFactorClaimsAsConfirmed"], each(&shown["mfaInstances"], "name")), (&json!(true), vec!["Codes"]));
        world.admin.put(&new, json!({ "name": "h", "concurrencyToken": shown["concurrencyToken"] })).await.expect(202);
        let reread = world.admin.get(&old).await.is(200).json();
        assert_eq!((&reread["name"], &reread["icon"], &reread["tenants"]), (&json!("h"), &json!("google.png"), &created["tenants"]));
        let put = world.admin.put(&old, json!({ "name": "h", "icon": "other.png", "tenants": [] })).await.is(202).json();
        assert_eq!((&put["icon"], &put["tenants"], each(&put["twoFactorInstances"], "name")), (&json!("other.png"), &json!([]), vec!["Codes"]));
        let patch = json!([{ "op": "add", "path": "/tenants/-", "value": { "id": tenant["id"] } }, { "op": "remove", "path": "/icon" }]);
        let patched = world.admin.patch(&old, patch).await.is(202).json();
        assert_eq!((&patched["icon"], &patched["tenants"]), (&json!(null), &created["tenants"]));
        let secret = patched["options"].as_array().unwrap().iter().find(|option| option["name"] == "ClientSecret").unwrap();
        assert_eq!((&secret["value"], &secret["applyToTwoFactorInstanceId"]), (&json!(""), &json!(null)), "it is empty");
        assert!(secret.get("dataType").is_none() && secret.get("applyToMfaInstanceId").is_none(), "{secret}");
    }

    async fn options_are_looked_up_by_target(world: World) {
        let factor = world.make("MfaInstance", json!({ "name": "Codes", "idpTypeId": type_id(&world, "totp").await })).await;
        for kind in ["1", "TwoFactorInstance"] {
            let of = format!("{BASE}/Option/type/{kind}/ref/{}", id(&factor));
            let all = world.admin.get(&of).await.is(200).json();
            assert_eq!(names(&all), ["Algorithm", "Digits", "Issuer", "Period"]);
            let digits = world.admin.get(&format!("{of}/name/Digits")).await.is(200).json();
            assert_eq!((&digits["value"], &digits["applyToTwoFactorInstanceId"]), (&json!("6"), &factor["id"]));
            assert!(digits.get("editorType").is_none() && digits.get("concurrencyToken").is_none());
            assert_eq!(world.admin.get(&format!("{of}/name/Digits/value")).await.is(200).json(), "6");
            world.admin.get(&format!("{of}/name/Nothing")).await.problem(404, "not-found");
        }
        let store = world.all("IdpInstance").await[0].clone();
        let of_store = world.admin.get(&format!("{BASE}/Option/type/0/ref/{}", id(&store))).await.is(200).json();
        assert!(of_store.as_array().unwrap().iter().all(|option| option["applyToIdpInstanceId"] == store["id"]));
        let tenant = world.all("Tenant").await[0].clone();
        world.admin.get(&format!("{BASE}/Option/type/2/ref/{}", id(&tenant))).await.expect(200);
        world.admin.get(&format!("{BASE}/Option/type/7/ref/{}", id(&tenant))).await.problem(400, "invalid-request");

        let digits = world.admin.get(&format!("{BASE}/Option/type/1/ref/{}/name/Digits", id(&factor))).await.is(200).json();
        let path = one("Option", &digits);
        let put = world.admin.put(&path, json!({ "name": "Digits", "value": "8" })).await.is(202).json();
        assert_eq!((&put["value"], &put["applyToTwoFactorInstanceId"]), (&json!("8"), &factor["id"]), "without a target it keeps its own");
        let patch = json!([{ "op": "replace", "path": "/value", "value": "7" }]);
        let patched = world.admin.patch(&path, patch).await.is(202).json();
        assert_eq!((&patched["value"], &patched["applyToTwoFactorInstanceId"]), (&json!("7"), &factor["id"]));
        let own = json!({ "name": "OurOwn", "value": "x", "applyToTwoFactorInstanceId": factor["id"] });
        world.admin.post(&format!("{BASE}/Option/createorupdate"), own).await.problem(400, "invalid-request");
        world.admin.delete(&path).await.expect(204);
        let own = json!({ "name": "Digits", "value": "8", "applyToTwoFactorInstanceId": factor["id"] });
        let own = world.admin.post(&format!("{BASE}/Option/createorupdate"), own).await.is(201).json();
        assert_eq!(own["applyToTwoFactorInstanceId"], factor["id"]);
        world.admin.delete(&one("Option", &own)).await.expect(204);
    }

    async fn assets_and_views_are_addressed_by_location(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let create = format!("{BASE}/CustomAsset/create");
        let body = json!({ "mimetype": "text/css", "assetFileName": "a.css", "data": BASE64_STANDARD.encode("p{}"), "applyToType": 3, "tenantId": tenant["id"], "more": 1 });
        let created = world.admin.post(&create, body.clone()).await.is(201).json();
        assert_eq!(created["location"], format!("/assets/tenant/{}/a.css", id(&tenant)));
        assert_eq!(created.as_object().unwrap().len(), 5, "{created}");
        let mut wrong = body;
        wrong["applyToType"] = json!(9);
        assert_eq!(pointers(&world.admin.post(&create, wrong).await.problem(400, "invalid-request")), ["/applyToType"]);
        let path = format!("{BASE}/CustomAsset{}", created["location"].as_str().unwrap());
        assert_eq!(world.admin.get(&path).await.is(200).json(), created);
        let again = json!({ "location": created["location"], "mimetype": "text/css", "data": BASE64_STANDARD.encode("b{1}") });
        assert_eq!(world.admin.post(&format!("{BASE}/CustomAsset/createorupdate"), again).await.is(201).json()["size"], 4);
        let patch = json!([{ "op": "replace", "path": "/data", "value": BASE64_STANDARD.encode("b{12}") }]);
        assert_eq!(world.admin.patch(&path, patch.clone()).await.is(202).json()["size"], 5);
        let batch = json!([{ "ids": [created["location"]], "patch": patch }]);
        assert_eq!(world.admin.patch(&format!("{BASE}/CustomAsset/batch"), batch).await.is(202).json()[0]["size"], 5);

        let template = json!({ "viewName": "SignIn", "applyToType": 0 });
        let view = world.admin.post(&format!("{BASE}/CustomView/viewtemplate/view"), template).await.is(201).json();
        assert_eq!((&view["location"], view.as_object().unwrap().len()), (&json!("/views/global/SignIn"), 2));
        for content in ["<p>a</p>", "<p>b</p>"] {
            let body = json!({ "location": "/views/global/Own", "content": content });
            assert_eq!(world.admin.post(&format!("{BASE}/CustomView/createorupdate"), body).await.is(201).json()["content"], content);
        }
        let many = json!([{ "location": "/views/global/Own", "content": "<p>c</p>" }, { "location": "/views/global/Other", "content": "<p>d</p>" }]);
        let many = world.admin.post(&format!("{BASE}/CustomView/createorupdate/batch"), many).await.is(200).json();
        assert_eq!(each(&many, "content"), ["<p>c</p>", "<p>d</p>"]);
        assert_eq!(world.admin.get(&format!("{BASE}/CustomView/views/global/Own")).await.is(200).json(), many[0]);
        assert_eq!(world.admin.get(&format!("{BASE}/CustomView")).await.is(200).json().as_array().unwrap().len(), 3);
        let missing = json!({ "content": "<p></p>" });
        assert_eq!(pointers(&world.admin.post(&format!("{BASE}/CustomView/createorupdate"), missing).await.problem(400, "invalid-request")), ["/location"]);
        world.admin.delete_with(&format!("{BASE}/CustomView/batch"), json!(["/views/global/Own", "views/global/Other"])).await.expect(204);
        world.admin.delete(&format!("{BASE}/CustomView/views/global/SignIn")).await.expect(204);
    }

    async fn customers_ranges_and_metadata(world: World) {
        let all = format!("{BASE}/Customer");
        let created = world.admin.post(&format!("{all}/createorupdate"), json!({ "name": "c", "address": "here" })).await.is(201).json();
        assert_eq!(created.as_object().unwrap().len(), 3, "{created}");
        let put = json!({ "id": created["id"], "name": "d" });
        let put = world.admin.post(&format!("{all}/createorupdate"), put).await.is(201).json();
        assert_eq!(put, json!({ "id": created["id"], "name": "d", "address": null }));
        world.admin.delete(&one("Customer", &created)).await.expect(204);

        let tenant = world.all("Tenant").await[0].clone();
        let range = json!({ "lower": "10.0.0.1", "upper": "10.0.0.9", "tenantId": tenant["id"] });
        let range = world.admin.post(&format!("{BASE}/IpAddressRange"), range).await.is(201).json();
        assert_eq!(range.as_object().unwrap().len(), 4, "{range}");
        let of_tenant = format!("{BASE}/IpAddressRange/tenant/{}", id(&tenant));
        assert_eq!(world.admin.get(&of_tenant).await.is(200).json(), json!([range]));

        let store = world.all("IdpInstance").await[0].clone();
        let entries = format!("{}/IdpInstanceMetadata", one("IdpInstance", &store));
        let entry = world.admin.post(&entries, json!({ "key": "region", "value": "north" })).await.is(201).json();
        assert_eq!(entry, json!({ "idpInstanceId": store["id"], "key": "region", "value": "north" }));
        let many = json!([{ "key": "region", "value": "south" }, { "key": "zone", "value": "1" }]);
        world.admin.post(&format!("{entries}/createorupdate/batch"), many).await.expect(200);
        for list in [entries.clone(), format!("{entries}/idpInstanceId")] {
            let listed = world.admin.get(&list).await.is(200).json();
            assert_eq!((each(&listed, "key"), each(&listed, "value")), (vec!["region", "zone"], vec!["south", "1"]));
        }
        world.admin.delete_with(&format!("{entries}/batch"), json!(["zone"])).await.expect(204);
        let shown = world.admin.get(&one("IdpInstance", &store)).await.is(200).json();
        assert_eq!(shown["metadata"], json!([{ "key": "region", "value": "south" }]));
    }
}
