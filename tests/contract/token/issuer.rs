//! Each tenant is an issuer of its own, besides the installation.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_testkit::{Answer, Client, World, on_both_engines};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Map, Value, json};

use super::{
    USERS, app, assert_oauth_error, configure, make_system_admin, post, read, request_token, secret, token,
};
use crate::{
    certificate::{body, upload},
    id,
    signer::{Signer, fresh, now},
};

const BASE: &str = "/api/management/v2";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS: &str = "urn:ietf:params:oauth:token-type:access_token";

/// A tenant with a client app that is assigned to it.
struct TenantClient {
    tenant: Value,
    app: Value,
    secret: String,
    /// The path that its issuer's URL ends with.
    path: String,
}

async fn assign(world: &World, app: &Value, tenants: &[&Value]) {
    let ids: Vec<&Value> = tenants.iter().map(|tenant| &tenant["id"]).collect();
    let path = format!("{BASE}/ClientApp/{}/tenants", id(app));
    world.admin.put(&path, json!({ "relatedIds": ids })).await.expect(202);
}

async fn tenant_client_in(world: &World, subscription: &Value, name: &str) -> TenantClient {
    let tenant = world.make("Tenant", json!({ "name": name, "subscriptionId": subscription })).await;
    let app = app(world, name, json!({ "subscriptionId": subscription })).await;
    assign(world, &app, &[&tenant]).await;
    let (secret, path) = (secret(world, &app).await, format!("/t/{}", id(&tenant)));
    TenantClient { tenant, app, secret, path }
}

impl TenantClient {
    async fn post(&self, world: &World, path: &str, more: &[(&str, &str)]) -> Answer {
        let own = [("client_id", id(&self.app)), ("client_secret", self.secret.as_str())];
        let all: Vec<(&str, &str)> = own.into_iter().chain(more.iter().copied()).collect();
        post(world, &format!("{}{path}", self.path), &[], &all).await
    }

    async fn request_token(&self, world: &World, more: &[(&str, &str)]) -> Answer {
        let all: Vec<_> =
            [("grant_type", "client_credentials")].into_iter().chain(more.iter().copied()).collect();
        self.post(world, "/connect/token", &all).await
    }

    async fn certify(&self, world: &World) -> KeyPair {
        let target = json!({ "certType": "OidcTokenSigning", "applyToTenantId": self.tenant["id"] });
        upload(world, &PKCS_ECDSA_P256_SHA256, 2080, target).await.key
    }
}

/// A resource server that trusts one issuer: it reads discovery and keys, then checks signature, issuer, audience and
/// time (RFC 9068, section 4).
struct Validator {
    issuer: String,
    /// The points of its keys, which are on P-256 in these tests.
    keys: Vec<Vec<u8>>,
}

impl Validator {
    async fn of(world: &World, path: &str) -> Self {
        let discovery =
            world.anonymous.get(&format!("{path}/.well-known/openid-configuration")).await.is(200).json();
        let issuer = format!("{}{path}", world.base);
        assert_eq!(discovery["issuer"], issuer);
        let set = world.anonymous.get(discovery["jwks_uri"].as_str().unwrap()).await.is(200).json();
        let part =
            |key: &Value, name: &str| BASE64_URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
        let point = |key: &Value| [vec![4], part(key, "x"), part(key, "y")].concat();
        let keys = set["keys"].as_array().unwrap().iter();
        // the installation's key for ID tokens is RSA, and signs no access token
        Self { issuer, keys: keys.filter(|key| key["kty"] == "EC").map(point).collect() }
    }

    fn accepts(&self, token: &str, audience: &str) -> bool {
        let Some((signed, signature)) = token.rsplit_once('.') else { return false };
        let (header, claims) = read(token);
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        let is_signed = self.keys.iter().any(|key| {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key)
                .verify(signed.as_bytes(), &signature)
                .is_ok()
        });
        is_signed
            && header["alg"] == "ES256"
            && header["typ"] == "at+jwt"
            && claims["iss"] == self.issuer.as_str()
            && claims["aud"].as_array().is_some_and(|all| all.contains(&json!(audience)))
            && claims["exp"].as_i64().is_some_and(|end| end > now())
    }
}

async fn kids(world: &World, path: &str) -> Vec<Value> {
    let set = world.anonymous.get(&format!("{path}/.well-known/jwks.json")).await.is(200).json();
    let keys = set["keys"].as_array().unwrap().iter();
    keys.filter(|key| key["kty"] == "EC").map(|key| key["kid"].clone()).collect()
}

async fn default_subscription(world: &World) -> Value {
    let all = world.all("Subscription").await;
    all.as_array().unwrap().iter().find(|one| one["name"] == "Default").unwrap()["id"].clone()
}

async fn patch(world: &World, resource: &str, row: &Value, body: Value) -> Answer {
    let path = format!("{BASE}/{resource}/{}", id(row));
    let mut body = body;
    body["concurrencyToken"] = world.admin.get(&path).await.is(200).json()["concurrencyToken"].clone();
    world.admin.patch(&path, body).await
}

on_both_engines! {
    /// Discovery lists exactly the supported features: additions and removals change the snapshot.
    async fn discovery_lists_exactly_the_supported_features(world: World) {
        let document = world.anonymous.get("/.well-known/openid-configuration").await.is(200).json();
        let document = serde_json::to_string_pretty(&document).unwrap().replace(&world.base, "https://id.example");
        insta::assert_snapshot!("discovery", document);
    }

    /// Issuers and signing keys are those of sign-ins, for client_credentials too.
    async fn a_tenant_is_an_issuer_of_its_own(world: World) {
        let default = default_subscription(&world).await;
        let (one, two) = (tenant_client_in(&world, &default, "one").await, tenant_client_in(&world, &default, "two").await);
        let url = format!("{}{}", world.base, one.path);
        for path in [
            format!("{}/.well-known/openid-configuration", one.path),
            format!("/.well-known/openid-configuration{}", one.path),
            format!("/.well-known/oauth-authorization-server{}", one.path),
        ] {
            let discovery = world.anonymous.get(&path).await.is(200).json();
            assert_eq!(discovery["issuer"], url);
            for (member, rest) in [
                ("token_endpoint", "/connect/token"),
                ("introspection_endpoint", "/connect/introspect"),
                ("revocation_endpoint", "/connect/revoke"),
                ("jwks_uri", "/.well-known/jwks.json"),
            ] {
                assert_eq!(discovery[member], format!("{url}{rest}"), "{path}");
            }
        }
        let issued = token(&one.request_token(&world, &[]).await.is(200));
        let claims = read(&issued).1;
        assert_eq!((&claims["iss"], &claims["tid"]), (&json!(url), &one.tenant["id"]));
        let at_installation = token(&request_token(&world, &one.app, &one.secret, &[]).await.is(200));
        assert_eq!((&read(&at_installation).1["iss"], read(&at_installation).1.get("tid")), (&json!(world.base), None));
        // only client apps assigned to the tenant get tokens there
        let foreign_app = TenantClient {
            path: two.path.clone(),
            app: one.app.clone(),
            secret: one.secret.clone(),
            tenant: two.tenant.clone(),
        };
        assert_oauth_error(foreign_app.request_token(&world, &[]).await, 401, "invalid_client");
        // other ids, and other spellings of the same, are no issuers
        for path in ["/t/nobody".to_owned(), format!("/t/{}", uuid::Uuid::nil()), one.path.to_uppercase().replace("/T/", "/t/")] {
            world.anonymous.get(&format!("{path}/.well-known/openid-configuration")).await.problem(404, "not-found");
            world.anonymous.get(&format!("{path}/.well-known/jwks.json")).await.problem(404, "not-found");
            post(&world, &format!("{path}/connect/token"), &[], &[]).await.problem(404, "not-found");
        }
    }

    /// A4: at a tenant's issuer the tenant's certificate signs, else its subscription's, else a Default one, else the
    /// installation's key; its key set holds these and no others.
    ///
    /// - Effect of `CertStore.applyToTenantId`: The certificate signs for this tenant.
    async fn an_issuer_publishes_exactly_the_keys_that_may_sign_there(world: World) {
        let default = default_subscription(&world).await;
        let (one, two) = (tenant_client_in(&world, &default, "one").await, tenant_client_in(&world, &default, "two").await);
        let far = world.other_subscription("far").await;
        let far = tenant_client_in(&world, &far, "far").await;
        let kid = |token: &str| read(token).0["kid"].clone();
        let signing_kid = async |client: &TenantClient| kid(&token(&client.request_token(&world, &[]).await.is(200)));
        let at_installation = async || kid(&token(&request_token(&world, &one.app, &one.secret, &[]).await.is(200)));
        let installation_kid = at_installation().await;
        assert_eq!(signing_kid(&one).await, installation_kid);
        upload(&world, &PKCS_ECDSA_P256_SHA256, 2080, json!({ "certType": "Default" })).await;
        let default_kid = at_installation().await;
        assert_ne!(default_kid, installation_kid);
        assert_eq!([signing_kid(&one).await, signing_kid(&far).await], [default_kid.clone(), default_kid.clone()]);
        let target = json!({ "certType": "OidcTokenSigning", "applyToSubscriptionId": default });
        upload(&world, &PKCS_ECDSA_P256_SHA256, 2040, target).await;
        let subscription_kid = signing_kid(&one).await;
        assert_eq!((signing_kid(&two).await, signing_kid(&far).await), (subscription_kid.clone(), default_kid.clone()));
        one.certify(&world).await;
        let tenant_kid = signing_kid(&one).await;
        assert_eq!((signing_kid(&two).await, at_installation().await), (subscription_kid.clone(), default_kid.clone()));
        assert_eq!(kids(&world, "").await, [&installation_kid, &default_kid].map(Value::clone));
        let mut published = kids(&world, &one.path).await;
        let mut expected = vec![installation_kid.clone(), default_kid.clone(), subscription_kid.clone(), tenant_kid];
        published.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        assert_eq!(published, expected);
        assert_eq!(kids(&world, &two.path).await.len(), 3);
        assert_eq!(kids(&world, &far.path).await.len(), 2);
    }

    /// A4: tokens of a tenant's issuer can be introspected and exchanged only there. The platform's own services accept
    /// them, as this server issued them.
    async fn a_token_is_introspected_and_exchanged_only_at_its_issuer(world: World) {
        let default = default_subscription(&world).await;
        let client = tenant_client_in(&world, &default, "home").await;
        make_system_admin(&world, &client.app).await;
        let issued = token(&client.request_token(&world, &[]).await.is(200));
        world.anonymous.with_token(&issued).get(USERS).await.expect(200);
        let introspection = client.post(&world, "/connect/introspect", &[("token", &issued)]).await.is(200).json();
        assert_eq!((&introspection["active"], &introspection["tid"]), (&json!(true), &client.tenant["id"]));
        let own = [("client_id", id(&client.app)), ("client_secret", client.secret.as_str()), ("token", issued.as_str())];
        assert_eq!(post(&world, "/connect/introspect", &[], &own).await.is(200).json(), json!({ "active": false }));
        let relation = format!("{BASE}/ClientApp/{}/allowedtokenexchangeclientapps", id(&client.app));
        world.admin.post(&relation, json!({ "relatedIds": [client.app["id"]] })).await.expect(202);
        let exchange = [("grant_type", EXCHANGE), ("subject_token", issued.as_str()), ("subject_token_type", ACCESS)];
        let exchanged = read(&token(&client.post(&world, "/connect/token", &exchange).await.is(200))).1;
        assert_eq!(exchanged["tid"], client.tenant["id"]);
        let all: Vec<_> = own[..2].iter().copied().chain(exchange).collect();
        assert_oauth_error(post(&world, "/connect/token", &[], &all).await, 400, "invalid_request");
        // it can be revoked at any issuer
        post(&world, "/connect/revoke", &[], &own).await.expect(200);
        world.anonymous.with_token(&issued).get(USERS).await.expect(401);
    }

    /// A4: `aud` of an assertion and `htu` of a proof must name the issuer of the request.
    async fn proofs_must_name_the_issuer_of_the_request(world: World) {
        let default = default_subscription(&world).await;
        let client = tenant_client_in(&world, &default, "home").await;
        let signer = Signer::new("key");
        configure(&world, &client.app, "private_key_jwt", json!({ "dpopBoundAccessTokens": true })).await;
        let set = json!({ "clientAppId": client.app["id"], "name": "key", "use": "Signing", "status": "Active", "jwks": signer.jwks() });
        world.make("ClientAppKeySet", set).await;
        let at_installation = format!("{}/connect/token", world.base);
        let at_tenant = format!("{}{}/connect/token", world.base, client.path);
        for (audience, url, status) in [
            (&at_installation, &at_installation, 401), (&at_tenant, &at_installation, 400), (&at_installation, &at_tenant, 401), (&at_tenant, &at_tenant, 200),
        ] {
            let claims = json!({
                "iss": client.app["id"], "sub": client.app["id"], "aud": audience, "jti": fresh(), "exp": now() + 60, "iat": now(),
            });
            let (assertion, proof) = (signer.assert(&claims), signer.prove("POST", url, json!({})));
            let form = [
                ("grant_type", "client_credentials"),
                ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                ("client_assertion", assertion.as_str()),
            ];
            post(&world, &format!("{}/connect/token", client.path), &[("dpop", &proof)], &form).await.expect(status);
        }
    }

    /// Section 15: an inactive subscription or tenant gets no tokens, and existing ones become invalid; administrators
    /// above it continue.
    ///
    /// - Effect of `Subscription.status`: The apps and tenants of an inactive subscription cannot be used.
    /// - Effect of `Tenant.isActive`: Nobody signs in at a tenant that is not active, and its issuer serves nothing.
    async fn inactive_tenants_and_subscriptions_get_no_tokens(world: World) {
        let far = world.other_subscription("far").await;
        let client = tenant_client_in(&world, &far, "home").await;
        let above = app(&world, "above", json!({ "subscriptionId": far })).await;
        assign(&world, &above, &[&client.tenant]).await;
        world.make("ClientAppRole", json!({ "clientAppId": above["id"], "roleType": "SubscriptionAdmin" })).await;
        let above_secret = secret(&world, &above).await;
        world.make("ClientAppRole", json!({ "clientAppId": client.app["id"], "roleType": "TenantAdmin", "applyToTenantId": client.tenant["id"] })).await;
        let at_tenant = token(&client.request_token(&world, &[]).await.is(200));
        let at_installation = token(&request_token(&world, &client.app, &client.secret, &[]).await.is(200));
        let tenants = format!("{BASE}/Tenant");
        let read = async |token: &str| world.anonymous.with_token(token).get(&tenants).await.status.as_u16();
        assert_eq!((read(&at_tenant).await, read(&at_installation).await), (200, 200));
        patch(&world, "Tenant", &client.tenant, json!({ "isActive": false })).await.expect(202);
        assert_eq!((read(&at_tenant).await, read(&at_installation).await), (401, 401));
        client.request_token(&world, &[]).await.problem(404, "not-found");
        world.anonymous.get(&format!("{}/.well-known/jwks.json", client.path)).await.problem(404, "not-found");
        assert_oauth_error(request_token(&world, &client.app, &client.secret, &[]).await, 401, "invalid_client");
        let caller = token(&request_token(&world, &above, &above_secret, &[]).await.is(200));
        assert_eq!(read(&caller).await, 200, "who administers the subscription goes on");
        patch(&world, "Tenant", &client.tenant, json!({ "isActive": true })).await.expect(202);
        assert_eq!((read(&at_tenant).await, read(&at_installation).await), (200, 200));
        let subscription = json!({ "id": far });
        patch(&world, "Subscription", &subscription, json!({ "status": "Inactive" })).await.expect(202);
        assert_eq!((read(&at_tenant).await, read(&caller).await), (401, 401));
        client.request_token(&world, &[]).await.problem(404, "not-found");
        assert_oauth_error(request_token(&world, &above, &above_secret, &[]).await, 401, "invalid_client");
        world.admin.get(&format!("{tenants}/{}", id(&client.tenant))).await.expect(200);
        // the last SystemAdmin's subscription stays
        let default = json!({ "id": default_subscription(&world).await });
        patch(&world, "Subscription", &default, json!({ "status": "Inactive" })).await.problem(409, "conflict");
    }

    /// Section 15: `allowCrossSubscription` is needed for any link between two subscriptions: without it a client app
    /// gets no token at a tenant of another subscription, and existing ones there become invalid.
    ///
    /// - Effect of `ClientApp.allowCrossSubscription`: Tenants and people of other subscriptions may use the app.
    async fn without_allow_cross_subscription_foreign_tenants_are_closed(world: World) {
        let far = world.other_subscription("far").await;
        let client = tenant_client_in(&world, &far, "home").await;
        let guest = app(&world, "guest", json!({ "allowCrossSubscription": true })).await;
        assign(&world, &guest, &[&client.tenant]).await;
        world.make("ClientAppRole", json!({ "clientAppId": guest["id"], "roleType": "SystemAdmin" })).await;
        let guest = TenantClient { secret: secret(&world, &guest).await, app: guest, ..client };
        let at_tenant = token(&guest.request_token(&world, &[]).await.is(200));
        let at_installation = token(&request_token(&world, &guest.app, &guest.secret, &[]).await.is(200));
        let read = async |token: &str| world.anonymous.with_token(token).get(&format!("{BASE}/Tenant")).await.status.as_u16();
        assert_eq!((read(&at_tenant).await, read(&at_installation).await), (200, 200));
        let disallow = "UPDATE client_app SET allow_cross_subscription = FALSE WHERE name = 'guest'";
        world.sql(vec![(disallow, Vec::new())]).await;
        assert_eq!((read(&at_tenant).await, read(&at_installation).await), (401, 200));
        assert_oauth_error(guest.request_token(&world, &[]).await, 401, "invalid_client");
    }

    /// A4, proof: a verifier that trusts one tenant's issuer accepts no token that the administrator of another tenant
    /// can obtain by any operation, in the same subscription or in another; nor does this server.
    async fn no_tenant_can_forge_tokens_of_another(world: World) {
        let default = default_subscription(&world).await;
        let far = world.other_subscription("far").await;
        let victim = tenant_client_in(&world, &default, "victim").await;
        victim.certify(&world).await;
        let api = "https://orders.example.com";
        let resource = |app: &Value| json!({ "clientAppId": app["id"], "key": api });
        world.make("ClientAppResource", resource(&victim.app)).await;
        let genuine = token(&victim.request_token(&world, &[("resource", api)]).await.is(200));
        let root = world.all(&format!("ClientApp?filter={}", crate::encode("name eq \"root\""))).await[0].clone();
        let (before, at_installation) = (kids(&world, &victim.path).await, kids(&world, "").await);
        for (name, subscription) in [("neighbour", &default), ("stranger", &far)] {
            let attacker = tenant_client_in(&world, subscription, name).await;
            let mut callers = vec![
                world.client_in(subscription, &format!("{name}-tenant"), &[("TenantAdmin", attacker.tenant["id"].as_str().unwrap().parse().ok(), None)]).await,
            ];
            if *subscription == far {
                callers.push(world.client_in(subscription, &format!("{name}-all"), &[("SubscriptionAdmin", None, None)]).await);
            }
            let keys = certificates(&callers, &[&json!(null), &attacker.tenant["id"], &victim.tenant["id"]], &[&json!(null), subscription, &default]).await;
            assert!(!keys.is_empty(), "the attacker has certificates of their own");
            for caller in &callers {
                // a resource of the same name, the victim's tenant for an app, the victim's app for a token
                assert_ne!(caller.post(&format!("{BASE}/ClientAppResource"), resource(&attacker.app)).await.status, 201);
                let tenants = format!("{BASE}/ClientApp/{}/tenants", id(&attacker.app));
                assert_ne!(caller.post(&tenants, json!({ "relatedIds": [victim.tenant["id"]] })).await.status, 202);
                let exchange = format!("{BASE}/ClientApp/{}/allowedtokenexchangeclientapps", id(&victim.app));
                assert_ne!(caller.post(&exchange, json!({ "relatedIds": [attacker.app["id"]] })).await.status, 202);
            }
            assert_eq!((kids(&world, &victim.path).await, kids(&world, "").await), (before.clone(), at_installation.clone()));
            let validator = Validator::of(&world, &victim.path).await;
            assert!(validator.accepts(&genuine, api));
            // tokens that the server issues to the attacker, at any issuer
            let mut issued = Vec::new();
            for path in ["", attacker.path.as_str(), victim.path.as_str()] {
                for resources in [&[][..], &[("resource", api)], &[("resource", "PlatformUserStoreService")]] {
                    let request = TenantClient {
                        path: path.to_owned(),
                        tenant: json!(null),
                        app: attacker.app.clone(),
                        secret: attacker.secret.clone(),
                    };
                    let answer = request.request_token(&world, resources).await;
                    issued.extend((answer.status == 200).then(|| token(&answer)));
                    let own = [("grant_type", EXCHANGE), ("subject_token", genuine.as_str()), ("subject_token_type", ACCESS)];
                    let answer = request.post(&world, "/connect/token", &own).await;
                    issued.extend((answer.status == 200).then(|| token(&answer)));
                }
            }
            assert!(!issued.is_empty());
            let audiences = |token: &str| read(token).1["aud"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect::<Vec<_>>();
            for token in &issued {
                assert!(audiences(token).iter().all(|audience| !validator.accepts(token, audience)), "{token}");
                assert!(!validator.accepts(token, api));
            }
            // tokens that the attacker signs, with every key and every key id
            let mut bodies: Vec<Map<String, Value>> = issued.iter().map(|token| read(token).1).collect();
            bodies.push(read(&genuine).1);
            let issuers = [world.base.clone(), validator.issuer.clone(), format!("{}{}", world.base, attacker.path)];
            for key in &keys {
                let forger = Signer::from_pkcs8(&key.serialize_der());
                let names = before.iter().chain(&at_installation).cloned().chain([json!(forger.thumbprint())]);
                for (kid, claims) in names.flat_map(|kid| bodies.iter().map(move |claims| (kid.clone(), claims))) {
                    for issuer in &issuers {
                        let mut claims = claims.clone();
                        claims.insert("iss".into(), json!(issuer));
                        let header = json!({ "typ": "at+jwt", "alg": "ES256", "kid": kid });
                        claims.insert("aud".into(), json!([api, "PlatformManagementService"]));
                        assert!(!validator.accepts(&forger.sign(&header, &claims.clone().into()), api));
                        claims.insert("sub".into(), root["id"].clone());
                        claims.insert("client_id".into(), root["id"].clone());
                        let token = forger.sign(&header, &claims.into());
                        assert!(!validator.accepts(&token, api));
                        world.anonymous.with_token(&token).get(USERS).await.expect(401);
                    }
                }
            }
        }
    }
}

/// Uploads certificates of every type and target by every caller; the keys of the accepted ones.
async fn certificates(callers: &[Client], tenants: &[&Value], subscriptions: &[&Value]) -> Vec<KeyPair> {
    let kinds =
        ["Default", "OidcTokenSigning", "OidcTokenEncryption", "AdfsOAuthTokenSigning", "AuditTrailSigning"];
    let mut keys = Vec::new();
    for caller in callers {
        for kind in kinds {
            for (tenant, subscription) in
                tenants.iter().flat_map(|tenant| subscriptions.iter().map(move |one| (tenant, one)))
            {
                let target = json!({
                    "certType": kind, "applyToTenantId": tenant, "applyToSubscriptionId": subscription,
                });
                let (body, key) = body(&PKCS_ECDSA_P256_SHA256, 2090, &target);
                if caller.post(&format!("{BASE}/CertStore"), body).await.status == 201 {
                    keys.push(key);
                }
            }
        }
    }
    keys
}
