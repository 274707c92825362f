//! The target of options: exactly one of an instance, a second factor and a tenant. Options can move
//! between targets.

use chancery_record::Value as Bound;
use chancery_testkit::{Answer, World, on_both_engines};
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE, one, type_id};
use crate::{
    each, encode, pointers,
    signing::{drop_option, wrong},
};

const IDP: &str = "applyToIdpInstanceId";
const MFA: &str = "applyToMfaInstanceId";
const TENANT: &str = "applyToTenantId";
const MEMBERS: [&str; 3] = [IDP, MFA, TENANT];

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

const MAIL: &str = r#"{"Host":"mail.example.com","UserName":"mailer","Password":"Rosebud-7f3a"}"#;

/// The ids of one target of each kind, in the order of the members: the user store, a
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
fn body_for(member: &str, target: &Value) -> Value {
    json!({ member: target })
}

/// Inserts an option that is not in the catalogue, as another release may have left it.
async fn insert_option(world: &World, member: &str, target: &Value) -> Value {
    insert_named_option(world, ("OurOwn", "kept"), member, target).await
}

async fn insert_named_option(
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
    let created = world.admin.get(&format!("{BASE}/Option/{id}")).await.is(200).json();
    assert_of(&created, member, target);
    created
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

/// Changes an option, with its current concurrencyToken.
async fn change(world: &World, (method, media): (Method, &str), option: &Value, mut body: Value) -> Answer {
    let path = one("Option", option);
    let now = world.admin.get(&path).await.is(200).json();
    body["concurrencyToken"] = now["concurrencyToken"].clone();
    world.admin.send(method, &path, &[("content-type", media)], body.to_string().into_bytes()).await
}

/// The methods and media types that change an option.
fn update_methods() -> [(Method, &'static str); 3] {
    [(Method::PUT, JSON), (Method::PATCH, JSON), (Method::PATCH, MERGE)]
}

/// Asserts that an option has this target and no other.
#[track_caller]
fn assert_of(option: &Value, member: &str, target: &Value) {
    for candidate in MEMBERS {
        let expected = if candidate == member { target } else { &Value::Null };
        assert_eq!(option[candidate], *expected, "{candidate} of {option}");
    }
}

/// Asserts that a body is refused because of its targets.
#[track_caller]
fn assert_refused(answer: Answer) {
    let error_pointers = wrong(answer);
    assert!(
        !error_pointers.is_empty() && error_pointers.iter().all(|pointer| pointer.starts_with("/applyTo")),
        "{error_pointers:?}"
    );
}

/// A body that clears every target but this one.
fn nothing_but(member: &str) -> Value {
    let others = MEMBERS.into_iter().filter(|candidate| *candidate != member);
    Value::Object(others.map(|candidate| (candidate.to_owned(), Value::Null)).collect())
}

/// The option of this name of a second factor.
async fn of_factor(world: &World, factor: &Value, name: &str) -> Value {
    let factor = factor.as_str().unwrap();
    let filter = encode(&format!("name eq \"{name}\" and {MFA} eq \"{factor}\""));
    world.all(&format!("Option?filter={filter}")).await[0].clone()
}

/// Whether the nested options of the first row of a resource include the one of [`insert_option`].
async fn shows(world: &World, resource: &str) -> bool {
    let all = world.all(resource).await;
    let names = each(&all[0]["options"], "name");
    names.contains(&"OurOwn")
}

on_both_engines! {
    /// Assigning one target clears the others, from any kind to any other.
    async fn an_option_moves_between_targets(world: World) {
        let targets = targets(&world).await;
        for (member_before, target_before) in MEMBERS.into_iter().zip(&targets) {
            for (member, target) in MEMBERS.into_iter().zip(&targets).filter(|(member, _)| *member != member_before) {
                for method in update_methods() {
                    let created = insert_option(&world, member_before, target_before).await;
                    let moved = change(&world, method, &created, body_for(member, target)).await.is(202).json();
                    assert_of(&moved, member, target);
                    assert_eq!((&moved["name"], &moved["value"]), (&json!("OurOwn"), &json!("kept")));
                    assert_ne!(moved["concurrencyToken"], created["concurrencyToken"]);
                    let path = one("Option", &created);
                    assert_eq!(world.admin.get(&path).await.is(200).json(), moved);
                    world.admin.delete(&path).await.expect(204);
                }
            }
        }
    }

    async fn an_option_is_listed_at_its_target(world: World) {
        let [store, factor, tenant] = targets(&world).await;
        let created = insert_option(&world, IDP, &store).await;
        assert!(shows(&world, "IdpInstance").await && !shows(&world, "MfaInstance").await);
        change(&world, (Method::PUT, JSON), &created, body_for(MFA, &factor)).await.expect(202);
        assert!(!shows(&world, "IdpInstance").await && shows(&world, "MfaInstance").await);
        change(&world, (Method::PATCH, JSON), &created, body_for(TENANT, &tenant)).await.expect(202);
        assert!(!shows(&world, "IdpInstance").await && !shows(&world, "MfaInstance").await);
        change(&world, (Method::PATCH, MERGE), &created, body_for(MFA, &factor)).await.expect(202);
        assert!(shows(&world, "MfaInstance").await);
    }

    /// Options of an instance, a second factor or a tenant are deleted with it.
    async fn an_option_is_deleted_with_its_target(world: World) {
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
            let created = insert_option(&world, member, target).await;
            world.admin.delete(&format!("{BASE}/{resource}/{target_id}")).await.expect(204);
            world.admin.get(&one("Option", &created)).await.problem(404, "not-found");
            let left = encode(&format!("{member} eq \"{target_id}\""));
            assert_eq!(world.all(&format!("Option?filter={left}")).await, json!([]), "{resource}");
        }
    }

    async fn two_targets_are_refused(world: World) {
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
            assert!(wrong(batch).iter().all(|pointer| pointer.starts_with("/0/applyTo")));
        }
        assert_eq!(world.all("Option?filter=name%20eq%20%22OurOwn%22").await, json!([]));
        for (member, target) in MEMBERS.into_iter().zip(&targets) {
            let created = insert_option(&world, member, target).await;
            for body in &conflicting {
                for method in update_methods() {
                    assert_refused(change(&world, method, &created, body.clone()).await);
                }
            }
            let path = one("Option", &created);
            assert_eq!(world.admin.get(&path).await.is(200).json(), created);
            world.admin.delete(&path).await.expect(204);
        }
    }

    async fn an_update_without_a_target_leaves_it_unchanged(world: World) {
        let targets = targets(&world).await;
        for (member, target) in MEMBERS.into_iter().zip(&targets) {
            let created = insert_option(&world, member, target).await;
            for (method, body) in [
                ((Method::PUT, JSON), json!({})),
                ((Method::PUT, JSON), json!({ "name": "OurOwn", "value": "kept" })),
                ((Method::PUT, JSON), nothing_but("")),
                ((Method::PATCH, JSON), json!({})),
                ((Method::PATCH, JSON), nothing_but("")),
                ((Method::PATCH, MERGE), json!({})),
                ((Method::PATCH, MERGE), nothing_but(member)),
                // the current target
                ((Method::PUT, JSON), body_for(member, target)),
                ((Method::PATCH, MERGE), body_for(member, target)),
            ] {
                let context = format!("{method:?} {body}");
                let unchanged = change(&world, method, &created, body).await.is(202).json();
                assert_of(&unchanged, member, target);
                assert_eq!((&unchanged["name"], &unchanged["value"]), (&json!("OurOwn"), &json!("kept")), "{context}");
            }
            world.admin.delete(&one("Option", &created)).await.expect(204);
        }
    }

    /// A merge patch clears members that are null; an option needs a target.
    async fn the_only_target_cannot_be_cleared(world: World) {
        let targets = targets(&world).await;
        for (index, (member, target)) in MEMBERS.into_iter().zip(&targets).enumerate() {
            let created = insert_option(&world, member, target).await;
            for body in [body_for(member, &Value::Null), nothing_but("")] {
                assert_refused(change(&world, (Method::PATCH, MERGE), &created, body).await);
            }
            assert_eq!(world.admin.get(&one("Option", &created)).await.is(200).json(), created);
            // it is cleared when another target is set
            let next = (index + 1) % MEMBERS.len();
            let (other, replacement) = (MEMBERS[next], &targets[next]);
            let body = json!({ member: null, other: replacement });
            let moved = change(&world, (Method::PATCH, MERGE), &created, body).await.is(202).json();
            assert_of(&moved, other, replacement);
            world.admin.delete(&one("Option", &created)).await.expect(204);
        }
    }

    /// Type hints and the validity of the value follow from the target.
    async fn type_hints_follow_the_target(world: World) {
        let [store, factor, _] = targets(&world).await;
        let hints = |option: &Value| {
            json!([option["dataType"], option["editorType"], option["hasConfigurationError"]])
        };
        let created = insert_named_option(&world, ("CodeLength", "many"), IDP, &store).await;
        assert_eq!(hints(&created), json!(["String", "Text", false]));
        let patch = (Method::PATCH, JSON);
        let taken = change(&world, patch.clone(), &created, body_for(MFA, &factor)).await.problem(409, "conflict");
        assert_eq!(pointers(&taken), ["/name"]);
        let own = of_factor(&world, &factor, "CodeLength").await;
        world.admin.delete(&one("Option", &own)).await.expect(204);
        let moved = change(&world, patch.clone(), &created, body_for(MFA, &factor)).await.is(202).json();
        assert_eq!(hints(&moved), json!(["Integer", "Number", true]));
        assert_eq!(world.all("MfaInstance").await[0]["hasConfigurationError"], true);
        // an option of the catalogue cannot move to a target that does not have it
        assert_eq!(wrong(change(&world, patch, &created, body_for(IDP, &store)).await), ["/name"]);
        world.admin.delete(&one("Option", &created)).await.expect(204);
        assert_eq!(world.all("MfaInstance").await[0]["hasConfigurationError"], false);
    }

    /// A new option has a name of the catalogue; another is refused with a suggestion. Stored ones can be changed and deleted.
    ///
    /// - Effect of `Option.name`: The option overrides the default of this name in the catalogue; unknown names are refused.
    async fn the_name_must_be_in_the_catalogue(world: World) {
        let targets = targets(&world).await;
        for (member, target, name, suggested) in [
            (IDP, &targets[0], "PasswordMinLenght", "PasswordMinLength"),
            (MFA, &targets[1], "codelenght", "CodeLength"),
            (TENANT, &targets[2], "SesionLifetime", "SessionLifetime"),
        ] {
            let body = json!({ "name": name, "value": "9", member: target });
            let problem = world.admin.post(&format!("{BASE}/Option"), body.clone()).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/name"]);
            let detail = problem["errors"][0]["detail"].as_str().unwrap();
            assert!(detail.ends_with(&format!("did you mean {suggested}?")), "{detail}");
            let batch = world.admin.post(&format!("{BASE}/Option/batch"), json!([body])).await;
            assert_eq!(wrong(batch), ["/0/name"]);
            let stored = insert_option(&world, member, target).await;
            assert_eq!(stored["hasConfigurationError"], false);
            let renamed = change(&world, (Method::PATCH, JSON), &stored, json!({ "name": name })).await;
            assert_eq!(wrong(renamed), ["/name"]);
            let updated = change(&world, (Method::PUT, JSON), &stored, json!({ "name": "OurOwn", "value": "new" })).await;
            assert_eq!(updated.is(202).json()["value"], "new");
            world.admin.delete(&one("Option", &stored)).await.expect(204);
        }
    }

    /// It moves, with its value, only to a target where it is also a secret.
    async fn a_secret_option_stays_secret(world: World) {
        let [store, factor, tenant] = targets(&world).await;
        let patch = (Method::PATCH, JSON);
        let secret = of_factor(&world, &factor, "MailServerConfig").await;
        let given = change(&world, patch.clone(), &secret, json!({ "value": MAIL })).await.is(202).json();
        assert_eq!((&given["value"], &given["hasConfigurationError"]), (&json!(MAIL), &json!(false)));
        for (member, target) in [(TENANT, &tenant), ("name", &json!("SomethingElse"))] {
            assert_eq!(wrong(change(&world, patch.clone(), &secret, body_for(member, target)).await), ["/name"]);
        }
        drop_option(&world, store.as_str().unwrap(), "MailServerConfig").await;
        let moved = change(&world, patch, &secret, body_for(IDP, &store)).await.is(202).json();
        assert_of(&moved, IDP, &store);
        assert_eq!(moved["value"], MAIL);
        assert_eq!(moved["hasConfigurationError"], false, "it can be read as well as before");
        assert_eq!(world.admin.get(&one("Option", &secret)).await.is(200).json(), moved);
        let instance = world.all("IdpInstance").await[0].clone();
        let options = instance["options"].as_array().unwrap();
        let nested = options.iter().find(|option| option["name"] == "MailServerConfig").unwrap();
        assert_eq!(nested["value"], json!(null));
    }

    async fn an_option_moves_only_within_the_caller_s_scope(world: World) {
        let [store, factor, _] = targets(&world).await;
        let far = world.other_subscription("Far").await;
        let body =
            json!({ "name": "Far", "idpTypeId": type_id(&world, "email").await, "subscriptionId": far });
        let foreign = world.make("MfaInstance", body).await;
        let near = world.client("near", &[("SubscriptionAdmin", None, None)]).await;
        let created = insert_option(&world, IDP, &store).await;
        let path = one("Option", &created);
        let patch = |target: &Value| json!({ MFA: target, "concurrencyToken": created["concurrencyToken"] });
        assert_eq!(wrong(near.patch(&path, patch(&foreign["id"])).await), ["/applyToMfaInstanceId"]);
        let moved = near.patch(&path, patch(&factor)).await.is(202).json();
        assert_of(&moved, MFA, &factor);
    }
}
