//! What options belong to: exactly one of an instance, a second factor and a tenant, and they move
//! between them.

use chancery_record::Value as Bound;
use chancery_testkit::{Answer, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE, one, type_id};
use crate::{
    each,
    list::encode,
    pointers,
    signing::{drop_option, wrong},
};

const IDP: &str = "applyToIdpInstanceId";
const MFA: &str = "applyToMfaInstanceId";
const TENANT: &str = "applyToTenantId";
const MEMBERS: [&str; 3] = [IDP, MFA, TENANT];

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

const MAIL: &str = r#"{"Host":"mail.example.com","UserName":"mailer","Password":"Rosebud-7f3a"}"#;

/// The ids of one of each kind that options belong to, in the order of the members: the user store, a
/// second factor of type email, the tenant.
async fn targets(world: &World) -> [Value; 3] {
    let factor = json!({ "name": "Codes", "idpTypeId": type_id(world, "email").await });
    let factor = world.make("MfaInstance", factor).await;
    [
        world.all("IdpInstance").await[0]["id"].clone(),
        factor["id"].clone(),
        world.all("Tenant").await[0]["id"].clone(),
    ]
}

/// A body that names a target.
fn at(member: &str, target: &Value) -> Value {
    json!({ member: target })
}

/// Makes an option that no catalogue has, as another release can have made it.
async fn make(world: &World, member: &str, target: &Value) -> Value {
    make_unknown(world, ("OurOwn", "kept"), member, target).await
}

async fn make_unknown(
    world: &World,
    (name, value): (&'static str, &'static str),
    member: &str,
    target: &Value,
) -> Value {
    let target_id = target.as_str().unwrap().parse().unwrap();
    let id = Uuid::new_v4();
    let text = match member {
        IDP => INSERT_IDP,
        MFA => INSERT_MFA,
        _ => INSERT_TENANT,
    };
    world.sql(vec![(text, vec![Bound::Id(id), name.into(), value.into(), Bound::Id(target_id)])]).await;
    let made = world.admin.get(&format!("{BASE}/Option/{id}")).await.is(200).json();
    assert_of(&made, member, target);
    made
}

const INSERT_IDP: &str = "INSERT INTO option_value (id, name, value, data_type, editor_type, has_configuration_error, concurrency_token, \
    apply_to_idp_instance_id, subscription_id, owner_type) SELECT ?1, ?2, ?3, 'String', 'Text', FALSE, 't', id, subscription_id, idp_type \
    FROM idp_instance WHERE id = ?4";
const INSERT_MFA: &str = "INSERT INTO option_value (id, name, value, data_type, editor_type, has_configuration_error, concurrency_token, \
    apply_to_mfa_instance_id, subscription_id, owner_type) SELECT ?1, ?2, ?3, 'String', 'Text', FALSE, 't', id, subscription_id, idp_type \
    FROM mfa_instance WHERE id = ?4";
const INSERT_TENANT: &str = "INSERT INTO option_value (id, name, value, data_type, editor_type, has_configuration_error, concurrency_token, \
    apply_to_tenant_id, subscription_id, owner_type) SELECT ?1, ?2, ?3, 'String', 'Text', FALSE, 't', id, subscription_id, 'Tenant' \
    FROM tenant WHERE id = ?4";

/// Changes an option as it is now.
async fn change(world: &World, (method, media): (Method, &str), option: &Value, mut body: Value) -> Answer {
    let path = one("Option", option);
    let now = world.admin.get(&path).await.is(200).json();
    body["concurrencyToken"] = now["concurrencyToken"].clone();
    world.admin.send(method, &path, &[("content-type", media)], body.to_string().into_bytes()).await
}

/// The ways to change an option.
fn ways() -> [(Method, &'static str); 3] {
    [(Method::PUT, JSON), (Method::PATCH, JSON), (Method::PATCH, MERGE)]
}

/// Asserts what an option belongs to, and that it is nothing else's.
#[track_caller]
fn assert_of(option: &Value, member: &str, target: &Value) {
    for known in MEMBERS {
        let wanted = if known == member { target } else { &Value::Null };
        assert_eq!(option[known], *wanted, "{known} of {option}");
    }
}

/// Asserts that a body is refused for what it says of targets.
#[track_caller]
fn assert_refused(answer: Answer) {
    let places = wrong(answer);
    assert!(!places.is_empty() && places.iter().all(|place| place.starts_with("/applyTo")), "{places:?}");
}

/// A body that empties every target but this one.
fn nothing_but(member: &str) -> Value {
    let others = MEMBERS.into_iter().filter(|known| *known != member);
    Value::Object(others.map(|known| (known.to_owned(), Value::Null)).collect())
}

/// The option of this name of a second factor.
async fn of_factor(world: &World, factor: &Value, name: &str) -> Value {
    let factor = factor.as_str().unwrap();
    let filter = encode(&format!("name eq \"{name}\" and {MFA} eq \"{factor}\""));
    world.all(&format!("Option?filter={filter}")).await[0].clone()
}

/// Whether the options that the first of a resource shows hold the one of [`make`].
async fn shows(world: &World, resource: &str) -> bool {
    let all = world.all(resource).await;
    let names = each(&all[0]["options"], "name");
    names.contains(&"OurOwn")
}

on_both_engines! {
    /// Assigning one target clears the others, from any kind to any other.
    async fn an_option_moves(world: World) {
        let targets = targets(&world).await;
        for (from, there) in MEMBERS.into_iter().zip(&targets) {
            for (to, target) in MEMBERS.into_iter().zip(&targets).filter(|(to, _)| *to != from) {
                for way in ways() {
                    let made = make(&world, from, there).await;
                    let moved = change(&world, way, &made, at(to, target)).await.is(202).json();
                    assert_of(&moved, to, target);
                    assert_eq!((&moved["name"], &moved["value"]), (&json!("OurOwn"), &json!("kept")));
                    assert_ne!(moved["concurrencyToken"], made["concurrencyToken"]);
                    let path = one("Option", &made);
                    assert_eq!(world.admin.get(&path).await.is(200).json(), moved);
                    world.admin.delete(&path).await.expect(204);
                }
            }
        }
    }

    async fn it_is_shown_where_it_belongs(world: World) {
        let [store, factor, tenant] = targets(&world).await;
        let made = make(&world, IDP, &store).await;
        assert!(shows(&world, "IdpInstance").await && !shows(&world, "MfaInstance").await);
        change(&world, (Method::PUT, JSON), &made, at(MFA, &factor)).await.expect(202);
        assert!(!shows(&world, "IdpInstance").await && shows(&world, "MfaInstance").await);
        change(&world, (Method::PATCH, JSON), &made, at(TENANT, &tenant)).await.expect(202);
        assert!(!shows(&world, "IdpInstance").await && !shows(&world, "MfaInstance").await);
        change(&world, (Method::PATCH, MERGE), &made, at(MFA, &factor)).await.expect(202);
        assert!(shows(&world, "MfaInstance").await);
    }

    /// What an instance, a second factor or a tenant is set to is its own, and goes with it.
    async fn it_goes_with_what_it_belongs_to(world: World) {
        let kind = type_id(&world, "Google").await;
        let targets = targets(&world).await;
        let instance = world.make("IdpInstance", json!({ "name": "Partner", "idpTypeId": kind })).await;
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let tenant = json!({ "name": "Sales", "subscriptionId": subscription });
        let tenant = world.make("Tenant", tenant).await;
        for (resource, member, target) in [
            ("IdpInstance", IDP, &instance["id"]),
            ("Tenant", TENANT, &tenant["id"]),
            ("MfaInstance", MFA, &targets[1]),
        ] {
            let target_id = target.as_str().unwrap();
            let made = make(&world, member, target).await;
            world.admin.delete(&format!("{BASE}/{resource}/{target_id}")).await.expect(204);
            world.admin.get(&one("Option", &made)).await.problem(404, "not-found");
            let left = encode(&format!("{member} eq \"{target_id}\""));
            assert_eq!(world.all(&format!("Option?filter={left}")).await, json!([]), "{resource}");
        }
    }

    async fn two_targets_contradict(world: World) {
        let targets = targets(&world).await;
        let [store, factor, tenant] = &targets;
        let conflicting = [
            json!({ IDP: store, MFA: factor }),
            json!({ MFA: factor, TENANT: tenant }),
            json!({ IDP: store, TENANT: tenant }),
            json!({ IDP: store, MFA: factor, TENANT: tenant }),
        ];
        for body in &conflicting {
            let mut create = body.clone();
            create["name"] = json!("ClaimIssuer");
            assert_refused(world.admin.post(&format!("{BASE}/Option"), create.clone()).await);
            let batch = world.admin.post(&format!("{BASE}/Option/batch"), json!([create])).await;
            assert!(wrong(batch).iter().all(|place| place.starts_with("/0/applyTo")));
        }
        assert_eq!(world.all("Option?filter=name%20eq%20%22OurOwn%22").await, json!([]));
        for (member, target) in MEMBERS.into_iter().zip(&targets) {
            let made = make(&world, member, target).await;
            for body in &conflicting {
                for way in ways() {
                    assert_refused(change(&world, way, &made, body.clone()).await);
                }
            }
            let path = one("Option", &made);
            assert_eq!(world.admin.get(&path).await.is(200).json(), made);
            world.admin.delete(&path).await.expect(204);
        }
    }

    async fn without_a_target_it_keeps_its_own(world: World) {
        let targets = targets(&world).await;
        for (member, target) in MEMBERS.into_iter().zip(&targets) {
            let made = make(&world, member, target).await;
            for (way, body) in [
                ((Method::PUT, JSON), json!({})),
                ((Method::PUT, JSON), json!({ "name": "OurOwn", "value": "kept" })),
                ((Method::PUT, JSON), nothing_but("")),
                ((Method::PATCH, JSON), json!({})),
                ((Method::PATCH, JSON), nothing_but("")),
                ((Method::PATCH, MERGE), json!({})),
                ((Method::PATCH, MERGE), nothing_but(member)),
                // the one that it has already
                ((Method::PUT, JSON), at(member, target)),
                ((Method::PATCH, MERGE), at(member, target)),
            ] {
                let told = format!("{way:?} {body}");
                let kept = change(&world, way, &made, body).await.is(202).json();
                assert_of(&kept, member, target);
                assert_eq!((&kept["name"], &kept["value"]), (&json!("OurOwn"), &json!("kept")), "{told}");
            }
            world.admin.delete(&one("Option", &made)).await.expect(204);
        }
    }

    /// A merge patch empties what is null; an option belongs to something.
    async fn the_only_target_is_not_emptied(world: World) {
        let targets = targets(&world).await;
        for (place, (member, target)) in MEMBERS.into_iter().zip(&targets).enumerate() {
            let made = make(&world, member, target).await;
            for body in [at(member, &Value::Null), nothing_but("")] {
                assert_refused(change(&world, (Method::PATCH, MERGE), &made, body).await);
            }
            assert_eq!(world.admin.get(&one("Option", &made)).await.is(200).json(), made);
            // where another takes its place it is
            let next = (place + 1) % MEMBERS.len();
            let (other, instead) = (MEMBERS[next], &targets[next]);
            let body = json!({ member: null, other: instead });
            let moved = change(&world, (Method::PATCH, MERGE), &made, body).await.is(202).json();
            assert_of(&moved, other, instead);
            world.admin.delete(&one("Option", &made)).await.expect(204);
        }
    }

    /// Hints, and whether the value can be read, are those of what it belongs to.
    async fn what_it_means_follows_what_it_belongs_to(world: World) {
        let [store, factor, _] = targets(&world).await;
        let meaning = |option: &Value| {
            json!([option["dataType"], option["editorType"], option["hasConfigurationError"]])
        };
        let made = make_unknown(&world, ("CodeLength", "many"), IDP, &store).await;
        assert_eq!(meaning(&made), json!(["String", "Text", false]));
        let patch = (Method::PATCH, JSON);
        let taken = change(&world, patch.clone(), &made, at(MFA, &factor)).await.problem(409, "conflict");
        assert_eq!(pointers(&taken), ["/name"]);
        let own = of_factor(&world, &factor, "CodeLength").await;
        world.admin.delete(&one("Option", &own)).await.expect(204);
        let moved = change(&world, patch.clone(), &made, at(MFA, &factor)).await.is(202).json();
        assert_eq!(meaning(&moved), json!(["Integer", "Number", true]));
        assert_eq!(world.all("MfaInstance").await[0]["hasConfigurationError"], true);
        // what the catalogue has does not become what it has not
        assert_eq!(wrong(change(&world, patch, &made, at(IDP, &store)).await), ["/name"]);
        world.admin.delete(&one("Option", &made)).await.expect(204);
        assert_eq!(world.all("MfaInstance").await[0]["hasConfigurationError"], false);
    }

    /// A new option has a name of the catalogue: another is refused with the nearest one. One that is there stays, and goes.
    async fn its_name_is_one_of_the_catalogue(world: World) {
        let targets = targets(&world).await;
        for (member, target, name, meant) in [
            (IDP, &targets[0], "PasswordMinLenght", "PasswordMinLength"),
            (MFA, &targets[1], "codelenght", "CodeLength"),
            (TENANT, &targets[2], "SesionLifetime", "SessionLifetime"),
        ] {
            let body = json!({ "name": name, "value": "9", member: target });
            let problem = world.admin.post(&format!("{BASE}/Option"), body.clone()).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/name"]);
            let detail = problem["errors"][0]["detail"].as_str().unwrap();
            assert!(detail.ends_with(&format!("did you mean {meant}?")), "{detail}");
            let batch = world.admin.post(&format!("{BASE}/Option/batch"), json!([body])).await;
            assert_eq!(wrong(batch), ["/0/name"]);
            let there = make(&world, member, target).await;
            assert_eq!(there["hasConfigurationError"], false);
            let renamed = change(&world, (Method::PATCH, JSON), &there, json!({ "name": name })).await;
            assert_eq!(wrong(renamed), ["/name"]);
            let kept = change(&world, (Method::PUT, JSON), &there, json!({ "name": "OurOwn", "value": "new" })).await;
            assert_eq!(kept.is(202).json()["value"], "new");
            world.admin.delete(&one("Option", &there)).await.expect(204);
        }
    }

    /// It moves with its value to where it is a secret, too, and to nowhere else.
    async fn a_secret_stays_one(world: World) {
        let [store, factor, tenant] = targets(&world).await;
        let patch = (Method::PATCH, JSON);
        let secret = of_factor(&world, &factor, "MailServerConfig").await;
        let given = change(&world, patch.clone(), &secret, json!({ "value": MAIL })).await.is(202).json();
        assert_eq!((&given["value"], &given["hasConfigurationError"]), (&json!(MAIL), &json!(false)));
        for (member, target) in [(TENANT, &tenant), ("name", &json!("SomethingElse"))] {
            assert_eq!(wrong(change(&world, patch.clone(), &secret, at(member, target)).await), ["/name"]);
        }
        drop_option(&world, store.as_str().unwrap(), "MailServerConfig").await;
        let moved = change(&world, patch, &secret, at(IDP, &store)).await.is(202).json();
        assert_of(&moved, IDP, &store);
        assert_eq!(moved["value"], MAIL);
        assert_eq!(moved["hasConfigurationError"], false, "it can be read as well as before");
        assert_eq!(world.admin.get(&one("Option", &secret)).await.is(200).json(), moved);
        let instance = world.all("IdpInstance").await[0].clone();
        let options = instance["options"].as_array().unwrap();
        let nested = options.iter().find(|option| option["name"] == "MailServerConfig").unwrap();
        assert_eq!(nested["value"], json!(null));
    }

    async fn it_moves_to_what_the_caller_has(world: World) {
        let [store, factor, _] = targets(&world).await;
        let far = world.other_subscription("Far").await;
        let body =
            json!({ "name": "Far", "idpTypeId": type_id(&world, "email").await, "subscriptionId": far });
        let foreign = world.make("MfaInstance", body).await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let made = make(&world, IDP, &store).await;
        let path = one("Option", &made);
        let patch = |target: &Value| json!({ MFA: target, "concurrencyToken": made["concurrencyToken"] });
        assert_eq!(wrong(near.patch(&path, patch(&foreign["id"])).await), ["/applyToMfaInstanceId"]);
        let moved = near.patch(&path, patch(&factor)).await.is(202).json();
        assert_of(&moved, MFA, &factor);
    }
}
