//! The management service, version 1.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{BASE, ids, names};
use crate::{each, id, management::type_id, pointers};

/// One of a resource, in version 1.
fn one(resource: &str, item: &Value) -> String {
    format!("{BASE}/{resource}/{}", id(item))
}

on_both_engines! {
    /// Version 1 has no member for the format of a file.
    async fn a_certificate_is_read_as_what_it_is(world: World) {
        let (body, key) = crate::token::certificate::body(&rcgen::PKCS_ECDSA_P256_SHA256, 2080, &json!({}));
        assert!(!key.serialize_pem().is_empty());
        let pem = body["certificateInput"]["data"].as_str().unwrap();
        let der: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        let pfx = include_bytes!("../../../crates/certificate/testdata/modern-p256.p12");
        let files = [BASE64_STANDARD.encode(pem), der, BASE64_STANDARD.encode(pfx)];
        let path = format!("{BASE}/CertStore");
        for (place, (file, format)) in files.iter().zip(["Pem", "Der", "Pkcs12"]).enumerate() {
            let upload = json!({ "name": format!("c{place}"), "certType": 0, "certificate": file, "password": "secret" });
            let made = world.admin.post(&path, upload).await.is(201).json();
            assert_eq!((&made["certType"], &made["applyToType"], &made["password"]), (&json!(0), &json!(0), &json!(null)));
            let whole = world.admin.get(&crate::management::one("CertStore", &made)).await.is(200).json();
            assert_eq!(whole["certificateStorageFormat"], format);
            // what is sent back changes nothing
            world.admin.put(&one("CertStore", &made), made.clone()).await.expect(202);
        }
    }

    /// B10: an upload without a target, where there are several subscriptions, is refused without naming a
    /// member that version 1 does not have.
    async fn an_upload_without_a_target_is_told_what_to_name(world: World) {
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

    /// B10: the successor of a path with a number names what version 2 takes.
    async fn successors_are_named_as_version_2_takes_them(world: World) {
        let instance = world.all("IdpInstance").await[0].clone();
        for given in ["0", "IdpInstance"] {
            let path = format!("{BASE}/Option/type/{given}/ref/{}", crate::id(&instance));
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

    async fn choices_are_numbers(world: World) {
        let all = format!("{BASE}/ClaimRule");
        let body = json!({ "name": "r", "ruleType": 1, "ruleLevel": "subscription", "destination": 2, "transformTarget": "ClaimValue" });
        let made = world.admin.post(&all, body).await.is(201).json();
        for (member, value) in [("ruleType", 1), ("ruleLevel", 0), ("destination", 2), ("filterTarget", 0), ("transformTarget", 1), ("priority", 0)] {
            assert_eq!(made[member], value, "{member}");
        }
        for hidden in ["inputSource", "disclosureMode", "concurrencyToken"] {
            assert!(made.get(hidden).is_none(), "{hidden} in {made}");
        }
        let new = world.admin.get(&crate::management::one("ClaimRule", &made)).await.is(200).json();
        assert_eq!((&new["ruleType"], &new["destination"], &new["inputSource"]), (&json!("Transform"), &json!("AccessToken"), &json!("All")));
        for wrong in [json!(4), json!(-1), json!("Guess"), json!(true), json!("1")] {
            let body = json!({ "name": "r", "ruleType": wrong, "ruleLevel": 0 });
            assert_eq!(pointers(&world.admin.post(&all, body).await.problem(400, "invalid-request")), ["/ruleType"], "{wrong}");
        }
        let patch = json!([{ "op": "test", "path": "/destination", "value": 2 }, { "op": "replace", "path": "/destination", "value": "None" }]);
        assert_eq!(world.admin.patch(&one("ClaimRule", &made), patch).await.is(202).json()["destination"], 0);
        assert_eq!(world.admin.get(&all).await.is(200).json()[0]["destination"], 0);
    }

    async fn rules_list_their_client_apps(world: World) {
        let (a, b) = (world.make("ClientApp", json!({ "name": "a" })).await, world.make("ClientApp", json!({ "name": "b" })).await);
        let body = json!({ "name": "r", "ruleType": 0, "ruleLevel": 2, "clientApps": ids(&[&a, &b]) });
        let made = world.admin.post(&format!("{BASE}/ClaimRule"), body).await.is(201).json();
        assert_eq!(names(&made["clientApps"]), ["a", "b"]);
        let path = one("ClaimRule", &made);
        let put = json!({ "name": "r", "ruleType": 0, "ruleLevel": 2, "clientApps": ids(&[&b]) });
        assert_eq!(names(&world.admin.put(&path, put).await.is(202).json()["clientApps"]), ["b"]);
        assert_eq!(names(&world.admin.put(&path, json!({ "name": "s" })).await.is(202).json()["clientApps"]), ["b"]);
    }

    async fn cert_stores_are_found_by_number_or_name(world: World) {
        let made = rcgen::generate_simple_self_signed(vec!["signing.example.com".to_owned()]).unwrap();
        let input = json!({ "format": "Pem", "data": made.cert.pem(), "privateKey": made.signing_key.serialize_pem() });
        let store = world.make("CertStore", json!({ "name": "signing", "certType": "OidcTokenSigning", "certificateInput": input })).await;
        let seen = world.admin.get(&one("CertStore", &store)).await.is(200).json();
        assert_eq!((&seen["certType"], &seen["applyToType"], &seen["password"]), (&json!(1), &json!(0), &json!(null)));
        assert!(seen.get("certificateStorageFormat").is_none() && seen.get("subscriptionId").is_none());
        for kind in ["1", "OidcTokenSigning", "oidctokensigning"] {
            let found = world.admin.get(&format!("{BASE}/CertStore/type/{kind}")).await.is(200).json();
            assert!(found.as_array().unwrap().contains(&seen), "{kind}: {found}");
        }
        let other = world.admin.get(&format!("{BASE}/CertStore/type/2")).await.is(200).json();
        assert!(!other.as_array().unwrap().contains(&seen));
        world.admin.get(&format!("{BASE}/CertStore/type/9")).await.problem(400, "invalid-request");
        // the key is not seen here, and stays
        let put = world.admin.put(&one("CertStore", &store), json!({ "name": "other", "certType": 1 })).await.is(202).json();
        assert_eq!((&put["name"], &put["thumbprint"]), (&json!("other"), &seen["thumbprint"]));
        let new = world.admin.get(&crate::management::one("CertStore", &store)).await.is(200).json();
        assert_eq!((&new["certificateHasPrivateKey"], &new["certificateStorageFormat"]), (&json!(true), &json!("Pem")));
    }

    async fn types_are_found_by_name(world: World) {
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

    async fn instances_keep_their_icon_and_their_sets(world: World) {
        let (kind, tenant) = (type_id(&world, "Google").await, world.all("Tenant").await[0].clone());
        let factor = world.make("MfaInstance", json!({ "name": "Codes", "idpTypeId": type_id(&world, "totp").await })).await;
        let body = json!({
            "name": "g", "idpTypeId": kind, "icon": "google.png", "treatSecondFactorClaimsAsConfirmed": true,
            "tenants": ids(&[&tenant]), "twoFactorInstances": ids(&[&factor]), "metadata": [{ "key": "x", "value": "y" }],
        });
        let made = world.admin.post(&format!("{BASE}/IdpInstance"), body).await.is(201).json();
        assert_eq!((&made["icon"], &made["treatSecondFactorClaimsAsConfirmed"]), (&json!("google.png"), &json!(true)));
        assert_eq!((each(&made["twoFactorInstances"], "name"), &made["metadata"]), (vec!["Codes"], &json!([])));
        assert_eq!(made["tenants"], json!([{ "id": tenant["id"], "name": tenant["name"] }]));
        assert!(made.get("mfaInstances").is_none() && made.get("concurrencyToken").is_none());
        let (old, new) = (one("IdpInstance", &made), crate::management::one("IdpInstance", &made));
        let seen = world.admin.get(&new).await.is(200).json();
        assert_eq!(seen["icon"], "google.png");
        assert_eq!((&seen["treatMfaFactorClaimsAsConfirmed"], each(&seen["mfaInstances"], "name")), (&json!(true), vec!["Codes"]));
        world.admin.put(&new, json!({ "name": "h", "concurrencyToken": seen["concurrencyToken"] })).await.expect(202);
        let kept = world.admin.get(&old).await.is(200).json();
        assert_eq!((&kept["name"], &kept["icon"], &kept["tenants"]), (&json!("h"), &json!("google.png"), &made["tenants"]));
        let put = world.admin.put(&old, json!({ "name": "h", "icon": "other.png", "tenants": [] })).await.is(202).json();
        assert_eq!((&put["icon"], &put["tenants"], each(&put["twoFactorInstances"], "name")), (&json!("other.png"), &json!([]), vec!["Codes"]));
        let patch = json!([{ "op": "add", "path": "/tenants/-", "value": { "id": tenant["id"] } }, { "op": "remove", "path": "/icon" }]);
        let patched = world.admin.patch(&old, patch).await.is(202).json();
        assert_eq!((&patched["icon"], &patched["tenants"]), (&json!(null), &made["tenants"]));
        let secret = patched["options"].as_array().unwrap().iter().find(|option| option["name"] == "ClientSecret").unwrap();
        assert_eq!((&secret["value"], &secret["applyToTwoFactorInstanceId"]), (&json!(""), &json!(null)), "it is empty");
        assert!(secret.get("dataType").is_none() && secret.get("applyToMfaInstanceId").is_none(), "{secret}");
    }

    async fn options_are_found_by_what_they_are_of(world: World) {
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

    async fn assets_and_views_go_by_location(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let create = format!("{BASE}/CustomAsset/create");
        let body = json!({ "mimetype": "text/css", "assetFileName": "a.css", "data": BASE64_STANDARD.encode("p{}"), "applyToType": 3, "tenantId": tenant["id"], "more": 1 });
        let made = world.admin.post(&create, body.clone()).await.is(201).json();
        assert_eq!(made["location"], format!("/assets/tenant/{}/a.css", id(&tenant)));
        assert_eq!(made.as_object().unwrap().len(), 5, "{made}");
        let mut wrong = body;
        wrong["applyToType"] = json!(9);
        assert_eq!(pointers(&world.admin.post(&create, wrong).await.problem(400, "invalid-request")), ["/applyToType"]);
        let path = format!("{BASE}/CustomAsset{}", made["location"].as_str().unwrap());
        assert_eq!(world.admin.get(&path).await.is(200).json(), made);
        let again = json!({ "location": made["location"], "mimetype": "text/css", "data": BASE64_STANDARD.encode("b{1}") });
        assert_eq!(world.admin.post(&format!("{BASE}/CustomAsset/createorupdate"), again).await.is(201).json()["size"], 4);
        let patch = json!([{ "op": "replace", "path": "/data", "value": BASE64_STANDARD.encode("b{12}") }]);
        assert_eq!(world.admin.patch(&path, patch.clone()).await.is(202).json()["size"], 5);
        let batch = json!([{ "ids": [made["location"]], "patch": patch }]);
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
        let made = world.admin.post(&format!("{all}/createorupdate"), json!({ "name": "c", "address": "here" })).await.is(201).json();
        assert_eq!(made.as_object().unwrap().len(), 3, "{made}");
        let put = json!({ "id": made["id"], "name": "d" });
        let put = world.admin.post(&format!("{all}/createorupdate"), put).await.is(201).json();
        assert_eq!(put, json!({ "id": made["id"], "name": "d", "address": null }));
        world.admin.delete(&one("Customer", &made)).await.expect(204);

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
