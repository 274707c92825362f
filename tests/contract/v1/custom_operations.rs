//! Operations other than the standard ones: their version 1 responses and their effects.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{Answer, Client, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};

use super::{BASE, UNKNOWN_ID, at, ids, names};
use crate::{
    each, id, pointers,
    resources::type_id,
    signing::{FIRST, Person, SECOND, counters, mails, millis, now, set_mail_server},
};

const DAY: i64 = 24 * 3600 * 1000;
const LATER: &str = "2099-01-01T00:00:00.000Z";

// the members of version 1, in the order of the contract
const USER: &str = "id externalUniqueIdentifier loginName firstName lastName emailAddress \
    emailAddressConfirmed userValidFrom userValidTo isUserActive isUserLockEnabled isUserLocked \
    failedUserLoginAttempts failedTemporaryLockAttempts lockedUntil passwordNeverExpires \
    canChangePasswordOnExpiration passwordExpiration isInitialPassword isPasswordChangeRequired \
    memberOfGroups userProfiles instanceId";
const GROUP: &str = "id name memberUsers parentGroups memberGroups metadata instanceId";
const ENTRY: &str = "id timestamp user area primaryKey category action dataSource originalContent \
    person currentContent originalSalt currentSalt originalDigest currentDigest signature signaturePublicKeyInfo";
const CERT_STORE: &str = "id name description certType certificate password thumbprint validFrom validTo \
    issuer serialNumber subject applyToType applyToSubscriptionId applyToTenantId idpInstances";
const IDP_INSTANCE: &str = "id name position isActive treatSecondFactorClaimsAsConfirmed \
    autoCreatePlatformUser isHidden icon idpTypeId idpFactoryType subscriptionId hasConfigurationError \
    options twoFactorInstances tenants clientApps certStores metadata";
const IDP_TYPE: &str = "id name providerType factoryType isActive twoFactorInstances";
const OPTION: &str = "id name value hasConfigurationError applyToIdpInstanceId applyToTwoFactorInstanceId \
    applyToTenantId";

/// Asserts that a resource has these members and no others.
#[track_caller]
fn assert_form(item: &Value, members: &str) {
    let mut expected: Vec<&str> = members.split_whitespace().collect();
    let mut shown: Vec<&str> = item.as_object().unwrap().keys().map(String::as_str).collect();
    expected.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, expected, "{item}");
}

/// POST without a body.
async fn call(client: &Client, path: &str) -> Answer {
    client.send(Method::POST, path, &[], Vec::new()).await
}

async fn read(world: &World, path: &str) -> Value {
    world.admin.get(path).await.is(200).json()
}

/// Creates a row of the management service in version 1.
async fn create(world: &World, resource: &str, body: Value) -> Value {
    world.admin.post(&format!("{BASE}/{resource}"), body).await.is(201).json()
}

/// Asserts that these paths of the management service are not found.
async fn assert_unknown(world: &World, paths: &[String]) {
    for path in paths {
        world.admin.get(&format!("{BASE}/{path}")).await.problem(404, "not-found");
    }
}

async fn group_in(world: &World, name: &str, parents: &[&Value]) -> Value {
    let body = json!({ "name": name, "parentGroups": ids(parents) });
    world.admin.post(&at("/Group"), body).await.is(201).json()
}

/// A body with a certificate that signs tokens.
fn certificate(name: &str, more: &Value) -> Value {
    let generated = rcgen::generate_simple_self_signed(vec!["signing.example.com".to_owned()]).unwrap();
    let mut body =
        json!({ "name": name, "certType": 1, "certificate": BASE64_STANDARD.encode(generated.cert.der()) });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// An instance of type `OpenIdConnect`.
async fn partner(world: &World) -> Value {
    let kind = type_id(world, "OpenIdConnect").await;
    create(world, "IdpInstance", json!({ "name": "Partner", "idpTypeId": kind })).await
}

fn option_path(instance: &Value, name: &str) -> String {
    format!("{BASE}/Option/type/0/ref/{}/name/{name}", id(instance))
}

async fn set_option(world: &World, instance: &Value, name: &str, value: &str) {
    let option = read(world, &option_path(instance, name)).await;
    let path = format!("{BASE}/Option/{}", id(&option));
    world.admin.put(&path, json!({ "name": name, "value": value })).await.expect(202);
}

on_both_engines! {
    async fn an_initial_password_gets_a_new_expiration(world: World) {
        let ada = Person::named(&world, "ada").await;
        let one = at(&format!("/User/{}", ada.id));
        let again = format!("{one}/password/initial/reset");
        call(&world.admin, &again).await.problem(409, "conflict");
        let body = json!({ "password": SECOND, "expiration": "2020-01-01T00:00:00Z" });
        world.admin.post(&format!("{one}/password/initial"), body).await.expect(200);
        let user = call(&world.admin, &again).await.is(200).json();
        assert_form(&user, USER);
        assert!(millis(&user["passwordExpiration"]) > now() + 6 * DAY, "{user}");
        assert_eq!((&user["isInitialPassword"], &user["isPasswordChangeRequired"]), (&json!(true), &json!(true)));
        assert_eq!(read(&world, &one).await, user);
        ada.change(SECOND, FIRST).await.expect(200);
        call(&world.admin, &again).await.problem(409, "conflict");
    }

    async fn a_requested_reset_token_is_sent_by_mail(world: World) {
        let ada = Person::new(&world, json!({ "loginName": "ada", "emailAddress": "ada@example.com" })).await;
        let without_mail_address = Person::named(&world, "bob").await;
        let path = |person: &Person<'_>, rest: &str| at(&format!("/User/{}/password/reset/{rest}", person.id));
        for rest in ["sendresetemail", "request"] {
            call(&world.admin, &path(&ada, rest)).await.problem(409, "conflict");
        }
        set_mail_server(&world.admin).await;
        for (rest, password) in [("sendresetemail", FIRST), ("request", SECOND)] {
            call(&world.admin, &path(&without_mail_address, rest)).await.problem(400, "invalid-request");
            let before = mails(&world).await.len();
            let answer = call(&world.admin, &path(&ada, rest)).await.is(200);
            let user = answer.json();
            assert_form(&user, USER);
            assert_eq!(read(&world, &at(&format!("/User/{}", ada.id))).await, user);
            let sent = mails(&world).await;
            assert_eq!(sent.len(), before + 1, "{rest}");
            let mail = &sent[before];
            assert_eq!((&mail["recipient"], &mail["kind"]), (&json!("ada@example.com"), &json!("PasswordReset")));
            let token = mail["token"].as_str().unwrap();
            assert!(!String::from_utf8_lossy(&answer.bytes).contains(token), "the answer does not tell it");
            let redeem = json!({ "token": token, "password": password });
            assert_form(&world.admin.post(&path(&ada, "response"), redeem).await.is(200).json(), USER);
            assert!(ada.has(password).await, "{rest}");
        }
    }

    async fn a_lock_is_reset(world: World) {
        let ada = Person::named(&world, "ada").await;
        let one = at(&format!("/User/{}", ada.id));
        ada.change("not it", SECOND).await.expect(400);
        assert_eq!(counters(&read(&world, &one).await), (1, 1));
        let body = json!({ "isUserLocked": true, "lockedUntil": LATER });
        let locked = world.admin.post(&format!("{one}/state"), body).await.is(200).json();
        assert_eq!((&locked["isUserLocked"], &locked["lockedUntil"]), (&json!(true), &json!(LATER)));
        let user = call(&world.admin, &format!("{one}/lockout/reset")).await.is(200).json();
        assert_form(&user, USER);
        assert_eq!((counters(&user), &user["isUserLocked"], &user["lockedUntil"]), ((0, 0), &json!(false), &json!(null)));
        assert_eq!(read(&world, &one).await, user);
        ada.change(FIRST, SECOND).await.expect(200);
    }

    async fn operations_without_a_body_need_an_existing_user(world: World) {
        for rest in ["password/initial/reset", "password/reset/sendresetemail", "password/reset/request", "lockout/reset"] {
            call(&world.admin, &at(&format!("/User/{UNKNOWN_ID}/{rest}"))).await.problem(404, "not-found");
            call(&world.admin, &at(&format!("/User/ada/{rest}"))).await.problem(400, "invalid-request");
        }
    }

    async fn a_user_is_looked_up_by_login_name(world: World) {
        for (name, look_up) in [("Ada@Example.com", "ADA%40example.COM"), ("a/b c%", "A%2Fb%20c%25")] {
            let created = world.admin.post(&at("/User"), json!({ "loginName": name })).await.is(201).json();
            let user = read(&world, &at(&format!("/User/loginname/{look_up}"))).await;
            assert_form(&user, USER);
            assert_eq!(user, created);
        }
        world.admin.get(&at("/User/loginname/nobody")).await.problem(404, "not-found");
    }

    async fn memberships_include_nested_groups(world: World) {
        let top = group_in(&world, "top", &[]).await;
        let (left, right) = (group_in(&world, "left", &[&top]).await, group_in(&world, "right", &[&top]).await);
        let bottom = group_in(&world, "bottom", &[&left, &right]).await;
        let ada = json!({ "loginName": "ada", "memberOfGroups": ids(&[&bottom]) });
        let ada = world.admin.post(&at("/User"), ada).await.is(201).json();
        let of_user = at(&format!("/Group/user/{}/membership", id(&ada)));
        let below = at(&format!("/Group/parentGroup/{}/membership", id(&top)));
        for (path, expected) in [(&of_user, &["bottom", "left", "right", "top"][..]), (&below, &["bottom", "left", "right"])] {
            let matches = read(&world, path).await;
            assert_eq!(names(&matches), expected, "{path}");
            for group in matches.as_array().unwrap() {
                assert_form(group, GROUP);
                assert_eq!(read(&world, &at(&format!("/Group/{}", id(group)))).await, *group, "items are whole groups");
            }
            let filtered = read(&world, &format!("{path}?filter=name%20sw%20%22LE%22")).await;
            assert_eq!(names(&filtered), ["left"]);
        }
        for path in [format!("/Group/user/{UNKNOWN_ID}/membership"), format!("/Group/parentGroup/{UNKNOWN_ID}/membership")] {
            world.admin.get(&at(&path)).await.problem(404, "not-found");
        }
    }

    async fn audit_entries_equal_those_of_version_2(world: World) {
        let ada = world.admin.post(&at("/User"), json!({ "loginName": "ada" })).await.is(201).json();
        world.admin.delete(&at(&format!("/User/{}", id(&ada)))).await.expect(204);
        let trail = at("/CustomAuditTrail");
        let all = read(&world, &trail).await;
        assert_eq!(all, read(&world, &world.path("/CustomAuditTrail")).await);
        assert_eq!((each(&all, "action"), each(&all, "primaryKey")), (vec!["Added", "Deleted"], vec![id(&ada); 2]));
        for entry in all.as_array().unwrap() {
            assert_form(entry, ENTRY);
            assert_eq!(read(&world, &format!("{trail}/{}", entry["id"])).await, *entry);
        }
        assert_eq!(read(&world, &format!("{trail}?filter=action%20eq%20%22Deleted%22")).await, json!([all[1]]));
        world.admin.get(&format!("{trail}/1")).await.problem(404, "not-found");
        world.admin.get(&format!("{trail}/x")).await.problem(400, "invalid-request");
    }
}

on_both_engines! {
    async fn cert_stores_are_looked_up_by_type_and_target(world: World) {
        let (tenant, store) = (world.all("Tenant").await[0].clone(), world.all("IdpInstance").await[0].clone());
        let subscription = tenant["subscriptionId"].as_str().unwrap();
        let t = create(&world, "CertStore", certificate("t", &json!({ "applyToTenantId": tenant["id"] }))).await;
        let s = json!({ "applyToSubscriptionId": subscription, "idpInstances": ids(&[&store]) });
        let s = create(&world, "CertStore", certificate("s", &s)).await;
        assert_eq!((&t["certType"], &t["applyToType"], &s["applyToType"]), (&json!(1), &json!(3), &json!(1)));
        assert_eq!(s["idpInstances"], json!([{ "id": store["id"], "name": store["name"] }]));
        assert_form(&s, CERT_STORE);
        let paths_by_target = [
            (String::new(), json!([t, s])),
            (format!("/tenant/{}", id(&tenant)), json!([t])),
            (format!("/subscription/{subscription}"), json!([s])),
            (format!("/idpinstance/{}", id(&store)), json!([s])),
        ];
        let all = format!("{BASE}/CertStore/type");
        for (target, expected) in &paths_by_target {
            for kind in ["1", "OidcTokenSigning", "oidctokensigning"] {
                assert_eq!(read(&world, &format!("{all}/{kind}{target}")).await, *expected, "{kind}{target}");
            }
            for kind in ["0", "Default", "2", "OidcTokenEncryption", "3", "4", "AuditTrailSigning"] {
                assert_eq!(read(&world, &format!("{all}/{kind}{target}")).await, json!([]), "{kind}{target}");
            }
            for kind in ["5", "-1", "Nothing"] {
                world.admin.get(&format!("{all}/{kind}{target}")).await.problem(400, "invalid-request");
            }
        }
        let unknown = ["tenant", "subscription", "idpinstance"];
        assert_unknown(&world, &unknown.map(|target| format!("CertStore/type/1/{target}/{UNKNOWN_ID}"))).await;
    }

    async fn asset_mime_types_are_limited(world: World) {
        let types = read(&world, &format!("{BASE}/CustomAsset/mimetypes")).await;
        assert_eq!(types, world.all("CustomAsset/mimetypes").await);
        let css = types.as_array().unwrap().iter().position(|kind| kind == "text/css").unwrap();
        let body = json!({ "mimetype": "text/css", "assetFileName": "a.css", "data": BASE64_STANDARD.encode("p{}") });
        // they have no numbers
        for wrong in [json!(css), json!(0), json!(-1), json!(99), json!("text/javascript")] {
            let mut body = body.clone();
            body["mimetype"] = wrong.clone();
            let problem = world.admin.post(&format!("{BASE}/CustomAsset/create"), body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/mimetype"], "{wrong}");
        }
        assert_eq!(read(&world, &format!("{BASE}/CustomAsset")).await, json!([]));
    }

    async fn apply_to_type_is_a_number_or_a_name(world: World) {
        let (tenant, app) = (world.all("Tenant").await[0].clone(), world.make("ClientApp", json!({ "name": "app" })).await);
        let subscription = tenant["subscriptionId"].as_str().unwrap();
        let body = |level: &Value, file: &str| json!({
            "mimetype": "text/css", "assetFileName": file, "data": BASE64_STANDARD.encode("p{}"), "applyToType": level,
            "tenantId": tenant["id"], "clientAppId": app["id"], "subscriptionId": subscription,
        });
        for (number, name, segment) in [
            (0, "Global", "global".to_owned()), (1, "Subscription", format!("subscription/{subscription}")),
            (2, "ClientApp", format!("clientapp/{}", id(&app))), (3, "tenant", format!("tenant/{}", id(&tenant))),
        ] {
            for (level, file) in [(json!(number), "number.css"), (json!(name), "name.css")] {
                let created = create(&world, "CustomAsset/create", body(&level, file)).await;
                assert_form(&created, "location mimetype data size fileName");
                assert_eq!((&created["location"], &created["fileName"]), (&json!(format!("/assets/{segment}/{file}")), &json!(file)));
                let path = format!("{BASE}/CustomAsset/assets/{segment}/{file}");
                assert_eq!(read(&world, &path).await, created);
            }
        }
        for wrong in [json!(4), json!(-1), json!("Nobody"), json!(true)] {
            let problem = world.admin.post(&format!("{BASE}/CustomAsset/create"), body(&wrong, "x.css")).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/applyToType"], "{wrong}");
        }
    }

    async fn shipped_views_are_readable(world: World) {
        let tenant = world.all("Tenant").await[0].clone();
        let shipped = read(&world, &format!("{BASE}/CustomView/viewtemplate/names")).await;
        assert_eq!(shipped, world.all("CustomView/viewtemplate/names").await);
        for name in shipped.as_array().unwrap() {
            let name = name.as_str().unwrap();
            let content = read(&world, &format!("{BASE}/CustomView/viewtemplate/content/{name}")).await;
            assert!(content.as_str().unwrap().contains('<'), "{name}");
            let body = json!({ "viewName": name, "applyToType": 3, "tenantId": tenant["id"] });
            let view = create(&world, "CustomView/viewtemplate/view", body).await;
            assert_eq!(view, json!({ "location": format!("/views/tenant/{}/{name}", id(&tenant)), "content": content }));
        }
        assert_unknown(&world, &["CustomView/viewtemplate/content/Nothing".to_owned()]).await;
    }

    async fn instances_are_looked_up_by_what_they_are_assigned_to(world: World) {
        let (tenant, app) = (world.all("Tenant").await[0].clone(), world.make("ClientApp", json!({ "name": "app" })).await);
        let kind = type_id(&world, "Google").await;
        for (name, position, apps) in [("b", 1, json!([])), ("a", 1, ids(&[&app])), ("z", 0, ids(&[&app]))] {
            let body = json!({ "name": name, "idpTypeId": kind, "position": position, "tenants": ids(&[&tenant]), "clientApps": apps });
            create(&world, "IdpInstance", body).await;
        }
        let of_tenant = format!("{BASE}/IdpInstance/tenant/{}", id(&tenant));
        let of_subscription = format!("{BASE}/IdpInstance/subscription/{}", tenant["subscriptionId"].as_str().unwrap());
        for (path, expected) in [
            (of_tenant.clone(), &["default", "z", "a", "b"][..]),
            (format!("{of_tenant}/clientapp/{}", id(&app)), &["z", "a"]),
            (of_subscription, &["default", "z", "a", "b"]),
            (format!("{of_tenant}?count=1&sortBy=name"), &["a"]),
        ] {
            let matches = read(&world, &path).await;
            assert_eq!(each(&matches, "name"), expected, "{path}");
            for instance in matches.as_array().unwrap() {
                assert_form(instance, IDP_INSTANCE);
                for option in instance["options"].as_array().unwrap() {
                    assert_form(option, OPTION);
                }
                assert_eq!(read(&world, &format!("{BASE}/IdpInstance/{}", id(instance))).await, *instance);
            }
        }
        assert_unknown(&world, &[
            format!("IdpInstance/tenant/{UNKNOWN_ID}"), format!("IdpInstance/tenant/{UNKNOWN_ID}/clientapp/{}", id(&app)),
            format!("IdpInstance/tenant/{}/clientapp/{UNKNOWN_ID}", id(&tenant)), format!("IdpInstance/subscription/{UNKNOWN_ID}"),
        ]).await;
    }

    async fn a_scim_token_replaces_the_one_before(world: World) {
        let partner = partner(&world).await;
        let path = |named: &str| format!("{BASE}/IdpInstance/{named}/scim/token");
        call(&world.admin, &path("Partner")).await.problem(400, "invalid-request");
        set_option(&world, &partner, "ScimEnabled", "True").await;
        let mut seen = Vec::new();
        for named in ["partner", id(&partner)] {
            assert!(call(&world.admin, &path(named)).await.is(204).bytes.is_empty());
            let value = async |name: &str| read(&world, &format!("{}/value", option_path(&partner, name))).await;
            seen.push((value("ScimToken").await, value("ScimTokenId").await));
        }
        assert!(seen.iter().all(|(token, _)| token.as_str().unwrap().len() == 56), "{seen:?}");
        assert!(seen[0].0 != seen[1].0 && seen[0].1 != seen[1].1, "{seen:?}");
        call(&world.admin, &path("default")).await.problem(400, "invalid-request");
        for unknown_instance in ["nobody", UNKNOWN_ID] {
            call(&world.admin, &path(unknown_instance)).await.problem(404, "not-found");
        }
    }

    async fn health_reflects_the_options(world: World) {
        let partner = partner(&world).await;
        let one = format!("{BASE}/IdpInstance/{}", id(&partner));
        let assert_health = async |has_error: bool, works: bool| {
            let expected = json!({ "instanceId": partner["id"], "hasConfigurationError": has_error, "isOperational": works });
            for path in [format!("{one}/health"), format!("{BASE}/IdpInstance/partner/health")] {
                assert_eq!(read(&world, &path).await, expected, "{path}");
            }
        };
        assert_health(true, false).await;
        for (name, value) in [("Authority", "https://partner.example.com"), ("ClientId", "us"), ("ClientSecret", "quiet")] {
            set_option(&world, &partner, name, value).await;
        }
        assert_health(false, true).await;
        let patch = json!([{ "op": "replace", "path": "/isActive", "value": false }]);
        world.admin.patch(&one, patch).await.expect(202);
        assert_health(false, false).await;
        assert_unknown(&world, &["IdpInstance/nobody/health".to_owned(), format!("IdpInstance/{UNKNOWN_ID}/health")]).await;
    }

    async fn a_type_is_looked_up_by_name(world: World) {
        world.make("MfaInstance", json!({ "name": "Codes", "idpTypeId": type_id(&world, "totp").await })).await;
        for (look_up, name, number, factors) in [("TOTP", "totp", 1, &["Codes"][..]), ("google", "Google", 0, &[])] {
            let kind = read(&world, &format!("{BASE}/IdpType/name/{look_up}")).await;
            assert_form(&kind, IDP_TYPE);
            assert_eq!((&kind["name"], &kind["factoryType"], &kind["providerType"]), (&json!(name), &json!(name), &json!(number)));
            assert_eq!(names(&kind["twoFactorInstances"]), factors, "{name}");
            assert_eq!(read(&world, &format!("{BASE}/IdpType/{}", id(&kind))).await, kind);
        }
        assert_unknown(&world, &["IdpType/name/Nothing".to_owned()]).await;
    }

    async fn ranges_are_listed_by_tenant(world: World) {
        let near = world.all("Tenant").await[0].clone();
        let far = world.make("Tenant", json!({ "name": "Sales", "subscriptionId": near["subscriptionId"] })).await;
        let range = async |lower: &str, upper: &str, tenant: &Value| {
            create(&world, "IpAddressRange", json!({ "lower": lower, "upper": upper, "tenantId": tenant["id"] })).await
        };
        let (a, b) = (range("10.0.0.1", "10.0.0.9", &near).await, range("2001:db8::1", "2001:db8::ff", &near).await);
        let other = range("10.0.0.1", "10.0.0.9", &far).await;
        assert_form(&a, "id lower upper tenantId");
        for (tenant, expected) in [(&near, json!([a, b])), (&far, json!([other]))] {
            assert_eq!(read(&world, &format!("{BASE}/IpAddressRange/tenant/{}", id(tenant))).await, expected);
        }
        assert_unknown(&world, &[format!("IpAddressRange/tenant/{UNKNOWN_ID}")]).await;
    }
}
