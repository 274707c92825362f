//! The resources around passkeys: access passes, recoveries, events, overviews. The ceremonies are
//! tested by scripts/check-passkeys, with a browser; here are their refusals.

mod options;
mod refusal;

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use crate::{authenticator::make_ready, each, id};

fn security(world: &World, rest: &str) -> String {
    world.path(&format!("/passkey-security{rest}"))
}

async fn items(world: &World, list: &str) -> Vec<Value> {
    let list_page = world.admin.get(&security(world, list)).await.is(200).json();
    let items = list_page["items"].as_array().unwrap().clone();
    if !list.contains("count=") {
        assert_eq!(list_page["totalCount"].as_u64().unwrap(), items.len() as u64);
    }
    items
}

pub async fn event_types(world: &World) -> Vec<String> {
    items(world, "/events")
        .await
        .iter()
        .map(|event| event["eventType"].as_str().unwrap().to_owned())
        .collect()
}

on_both_engines! {
    async fn access_passes_are_issued_used_and_revoked(world: World) {
        let user = world.user("ada").await;
        let passes = security(&world, "/temporary-access-passes");
        let issued = world.admin.post(&passes, json!({ "userId": id(&user) })).await.is(201).json();
        let value = issued["value"].as_str().unwrap();
        assert_eq!((value.len(), &issued["status"], &issued["isOneTimeUse"]), (12, &json!("Active"), &json!(true)));
        assert!(issued["createdByActorId"].is_string());
        let listed = items(&world, "/temporary-access-passes").await;
        assert_eq!(listed.len(), 1);
        assert!(listed[0].get("value").is_none() && listed[0].get("digest").is_none());
        assert!(!world.audit(5).await.iter().any(|entry| entry.to_string().contains(value)), "never in the trail");

        let redemption = format!("{passes}/redemption");
        let wrong = json!({ "loginName": "ada", "value": "AAAAAAAAAAAA" });
        world.set_option("LoginThrottlingEnabled", "false").await;
        world.admin.post(&redemption, wrong.clone()).await.problem(400, "invalid-request");
        let one = world.path(&format!("/User/{}", id(&user)));
        assert_eq!(world.admin.get(&one).await.is(200).json()["failedTemporaryLockAttempts"], 1, "a wrong value counts");
        let redeemed = world.admin.post(&redemption, json!({ "loginName": "ADA", "value": value })).await.is(200).json();
        assert_eq!((&redeemed["userId"], &redeemed["temporaryAccessPassId"]), (&user["id"], &issued["id"]));
        assert_eq!(world.admin.get(&one).await.is(200).json()["failedTemporaryLockAttempts"], 0);
        world.admin.post(&redemption, json!({ "loginName": "ada", "value": value })).await.problem(400, "invalid-request");
        assert_eq!(items(&world, "/temporary-access-passes?filter=status%20eq%20%22Used%22").await.len(), 1);

        let many = json!({ "userId": id(&user), "isOneTimeUse": false, "lifetimeMinutes": 5 });
        let windowed = world.admin.post(&passes, many).await.is(201).json();
        let body = json!({ "loginName": "ada", "value": windowed["value"] });
        world.admin.post(&redemption, body.clone()).await.expect(200);
        world.admin.post(&redemption, body.clone()).await.expect(200);
        world.admin.delete(&format!("{passes}/{}", id(&windowed))).await.expect(204);
        world.admin.delete(&format!("{passes}/{}", id(&windowed))).await.problem(409, "conflict");
        world.admin.post(&redemption, body).await.problem(400, "invalid-request");
        assert_eq!(event_types(&world).await, ["TemporaryAccessPassIssued", "TemporaryAccessPassUsed", "TemporaryAccessPassIssued",
            "TemporaryAccessPassUsed", "TemporaryAccessPassUsed", "TemporaryAccessPassRevoked"]);
        let mut statuses: Vec<_> = items(&world, "/temporary-access-passes").await.iter().map(|pass| pass["status"].as_str().unwrap().to_owned()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, ["Revoked", "Used"]);
    }

    /// - Effect of `UserStore options.TemporaryAccessPassEnabled`: Access passes can be issued and used.
    /// - Effect of `UserStore options.TemporaryAccessPassLength`: New access passes have this number of characters.
    async fn access_passes_have_their_bounds(world: World) {
        let user = world.user("ada").await;
        let passes = security(&world, "/temporary-access-passes");
        for (body, pointer) in [
            (json!({ "userId": id(&user), "lifetimeMinutes": 481 }), "/lifetimeMinutes"),
            (json!({ "userId": id(&user), "lifetimeMinutes": 0 }), "/lifetimeMinutes"),
            (json!({ "userId": "0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f" }), "/userId"),
            (json!({}), "/userId"),
        ] {
            let problem = world.admin.post(&passes, body).await.problem(400, "invalid-request");
            assert_eq!(each(&problem["errors"], "pointer"), [pointer]);
        }
        // Section 15: a pass whose validFrom has gone by begins now, and its answer says so
        let before = crate::signing::now();
        let early = json!({ "userId": id(&user), "validFrom": "2020-01-01T00:00:00Z", "lifetimeMinutes": 60 });
        let early = world.admin.post(&passes, early).await.is(201).json();
        let begins = crate::signing::millis(&early["validFrom"]);
        assert!((before..=crate::signing::now()).contains(&begins), "{early}");
        assert_eq!((&early["validFrom"], &early["status"]), (&early["createdOn"], &json!("Active")));
        assert_eq!(crate::signing::millis(&early["expiresOn"]), begins + 3_600_000);
        world.admin.delete(&format!("{passes}/{}", id(&early))).await.expect(204);
        // time alone changes the state of a pass
        let later = json!({ "userId": id(&user), "validFrom": "2199-01-01T00:00:00Z" });
        let pass = world.admin.post(&passes, later).await.is(201).json();
        assert_eq!((&pass["status"], &pass["expiresOn"]), (&json!("NotYetValid"), &json!("2199-01-01T01:00:00.000Z")));
        let body = json!({ "loginName": "ada", "value": pass["value"] });
        world.admin.post(&format!("{passes}/redemption"), body).await.problem(400, "invalid-request");
        world.sql(vec![("UPDATE temporary_access_pass SET valid_from = 1, expires_on = 2", vec![])]).await;
        let filter = "/temporary-access-passes?filter=status%20eq%20%22Expired%22&sortBy=expiresOn&count=1";
        assert_eq!(items(&world, filter).await[0]["id"], pass["id"]);
        world.set_option("TemporaryAccessPassEnabled", "false").await;
        world.admin.post(&passes, json!({ "userId": id(&user) })).await.problem(409, "conflict");
        world.set_option("TemporaryAccessPassEnabled", "true").await;
        world.set_option("TemporaryAccessPassLength", "20").await;
        let long = world.admin.post(&passes, json!({ "userId": id(&user) })).await.is(201).json();
        assert_eq!(long["value"].as_str().unwrap().len(), 20);
        // they are deleted with their user
        world.admin.post(&world.path(&format!("/User/{}/erase", id(&user))), json!({})).await.expect(204);
        assert_eq!(items(&world, "/temporary-access-passes").await, Vec::<Value>::new());
    }

    async fn a_recovery_takes_two(world: World) {
        let user = world.user("ada").await;
        let recoveries = security(&world, "/recovery-transactions");
        let new = json!({ "userId": id(&user), "method": "IdentityDocument", "reason": "lost the key" });
        // Section 15: a recovery needs a reason that is not blank
        for reason in ["", " \t", "\u{a0}"] {
            let blank = json!({ "userId": id(&user), "method": "IdentityDocument", "reason": reason });
            let problem = world.admin.post(&recoveries, blank).await.problem(400, "invalid-request");
            assert_eq!(each(&problem["errors"], "pointer"), ["/reason"]);
        }
        let started = world.admin.post(&recoveries, new.clone()).await.is(201).json();
        assert_eq!((&started["status"], &started["completedOn"]), (&json!("Requested"), &json!(null)));
        world.admin.post(&recoveries, new.clone()).await.problem(409, "conflict");
        let at = |rest: &str| format!("{recoveries}/{}/{rest}", id(&started));
        world.admin.post(&at("completion"), json!({})).await.problem(409, "conflict");
        world.admin.post(&at("approvals"), json!({})).await.problem(409, "conflict");
        let store = user["instanceId"].as_str().unwrap().parse().unwrap();
        let second = world.client("second", &[("UserStoreAdmin", None, Some(store))]).await;
        // as if it had been created by another one than its requester
        world.sql(vec![("DELETE FROM client_app_controller", vec![])]).await;
        assert_eq!(second.post(&at("approvals"), json!({})).await.is(200).json()["status"], "Approved");
        let done = world.admin.post(&at("completion"), json!({})).await.is(200).json();
        assert_eq!(done["status"], "Completed");
        assert!(done["completedOn"].is_string());
        world.admin.post(&at("cancellation"), json!({})).await.problem(409, "conflict");
        assert_eq!(event_types(&world).await, ["RecoveryStarted", "RecoveryCompleted"]);

        // an expired one is not open any more
        let second = world.admin.post(&recoveries, new.clone()).await.is(201).json();
        world.sql(vec![("UPDATE recovery_transaction SET expires_on = 1 WHERE status = 'Requested'", vec![])]).await;
        let expired = items(&world, "/recovery-transactions?filter=status%20eq%20%22Expired%22").await;
        assert_eq!(expired[0]["id"], second["id"]);
        world.admin.post(&format!("{recoveries}/{}/approvals", id(&second)), json!({})).await.problem(409, "conflict");
        let third = world.admin.post(&recoveries, new).await.is(201).json();
        world.admin.post(&format!("{recoveries}/{}/cancellation", id(&third)), json!({})).await.expect(200);
        assert_eq!(items(&world, "/recovery-transactions").await.len(), 3);
    }

    async fn overviews_show_the_missing_requirements(world: World) {
        let user = world.user("ada").await;
        let overview = world.admin.get(&security(&world, &format!("/users/{}", id(&user)))).await.is(200).json();
        assert_eq!(overview["user"], json!({ "id": user["id"], "loginName": "ada", "displayName": "ada" }));
        let readiness = &overview["readiness"];
        assert_eq!((&readiness["passwordCredentialStatus"], &readiness["primaryAuthenticationStatus"]), (&json!("NotSet"), &json!("None")));
        assert_eq!(readiness["blockingReasons"], json!(["PasswordNotSet", "InsufficientUsableCredentials", "CredentialDiversityNotSatisfied",
            "InsufficientVerifiedSecurityContacts", "MatureBindingLineageMissing"]));
        assert_eq!((&readiness["readyForPasswordRemoval"], &readiness["requiredCredentialCount"]), (&json!(false), &json!(2)));
        for array in ["credentials", "temporaryAccessPasses", "recoveryTransactions", "securityEvents"] {
            assert_eq!(overview[array], json!([]), "{array}");
        }
        let before = readiness["policyFingerprint"].clone();
        world.set_option("PasskeyRequiredCredentialCount", "0").await;
        world.admin.post(&world.path(&format!("/User/{}/password/reset", id(&user))), json!({ "newPassword": "four lively grey herons" })).await.expect(200);
        world.admin.post(&security(&world, "/temporary-access-passes"), json!({ "userId": id(&user) })).await.expect(201);
        let overview = world.admin.get(&security(&world, &format!("/users/{}", id(&user)))).await.is(200).json();
        assert_ne!(overview["readiness"]["policyFingerprint"], before, "another policy");
        assert_eq!(overview["readiness"]["passwordCredentialStatus"], "Active");
        assert_eq!(overview["temporaryAccessPasses"].as_array().unwrap().len(), 1);
        assert_eq!(overview["securityEvents"][0]["eventType"], "TemporaryAccessPassIssued");

        world.user("bob").await;
        let all = world.admin.get(&security(&world, "/operations")).await.is(200).json();
        assert!(all["generatedOn"].is_string());
        assert_eq!(all["users"].as_array().unwrap().len(), 2);
        assert_eq!(all["users"][0]["readiness"]["userId"], user["id"]);
        assert_eq!(all["temporaryAccessPasses"].as_array().unwrap().len(), 1);
        let unknown_user = security(&world, "/users/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f");
        world.admin.get(&unknown_user).await.problem(404, "not-found");
    }

    /// The reasons that hold people back, counted over a store of several batches: the same as in the users' own overviews.
    async fn the_readiness_of_a_store_is_counted_by_reason(world: World) {
        let people: Vec<Value> =
            (0..600).map(|number| json!({ "loginName": format!("u{number}"), "isUserActive": number % 3 > 0 })).collect();
        let people = world.admin.post(&world.path("/User/batch"), json!(people)).await.is(200).json();
        let ready = people[1].clone();
        make_ready(&world, &[&ready]).await;
        world.admin.delete(&world.path(&format!("/User/{}", id(&people[599])))).await.expect(204);
        let counted = world.admin.get(&security(&world, "/readiness")).await.is(200).json();
        assert!(counted["generatedOn"].is_string());
        assert_eq!((&counted["users"], &counted["isComplete"], &counted["ready"]), (&json!(599), &json!(true), &json!(1)), "{counted}");
        let reasons: Vec<_> = counted["reasons"].as_array().unwrap().iter().map(|one| (one["reason"].as_str().unwrap(), one["users"].as_i64().unwrap())).collect();
        assert_eq!(reasons, [
            ("UserInactive", 200), ("UserLocked", 0), ("UserInDeletionQuarantine", 0), ("PasswordNotSet", 598),
            ("InsufficientUsableCredentials", 598), ("CredentialDiversityNotSatisfied", 598),
            ("InsufficientVerifiedSecurityContacts", 0), ("RecoveryRouteNotOperational", 0), ("MatureBindingLineageMissing", 598),
        ]);
        let own = world.admin.get(&security(&world, &format!("/users/{}", id(&people[0])))).await.is(200).json();
        let of_others = reasons.iter().filter(|(_, users)| *users > 0).map(|(reason, _)| *reason).collect::<Vec<_>>();
        assert_eq!(own["readiness"]["blockingReasons"], json!(of_others));

        // the people behind a number, and the counts by another policy
        assert_eq!((&counted["people"], &counted["requiredCredentialCount"]), (&json!(null), &json!(1)));
        let readiness = async |query: &str| world.admin.get(&security(&world, &format!("/readiness?{query}"))).await.is(200).json();
        let named = |page: &Value| each(&page["people"], "loginName").into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(named(&readiness("reason=Ready").await), ["u1"]);
        let inactive = named(&readiness("reason=UserInactive").await);
        assert_eq!((inactive.len(), inactive[0].as_str(), inactive[1].as_str()), (100, "u0", "u3"));
        assert_eq!(named(&readiness("reason=UserLocked").await), <[String; 0]>::default());
        let more = readiness("requiredCredentialCount=3&reason=Ready").await;
        assert_eq!((&more["ready"], &more["requiredCredentialCount"], named(&more).len()), (&json!(0), &json!(3), 0));
        for wrong in ["reason=ready", "reason=", "requiredCredentialCount=-1"] {
            world.admin.get(&security(&world, &format!("/readiness?{wrong}"))).await.problem(400, "invalid-request");
        }
    }

    /// - Effect of `UserStore options.PasskeyEnabled`: Passkeys can be registered and sign people in.
    async fn ceremonies_begin_and_end_once(world: World) {
        let user = world.user("ada").await;
        let path = world.path(&format!("/PasskeyCredential/user/{}", id(&user)));
        assert_eq!(world.admin.get(&path).await.is(200).json(), json!([]));
        let begun = world.admin.post(&format!("{path}/registration"), json!({})).await.is(200).json();
        assert_eq!(begun["publicKey"]["user"]["name"], "ada");
        let end = format!("{path}/registration/{}", begun["ceremonyId"].as_str().unwrap());
        world.admin.put(&end, json!({ "id": "x" })).await.problem(400, "invalid-request");
        world.admin.put(&end, json!({ "id": "x" })).await.problem(404, "not-found");
        let authentication = world.path("/PasskeyCredential/authentication");
        let known = world.admin.post(&authentication, json!({ "loginName": "ada" })).await.is(200).json();
        let unknown = world.admin.post(&authentication, json!({ "loginName": "nobody" })).await.is(200).json();
        let members = |begun: &Value| begun["publicKey"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(members(&known), members(&unknown), "a login name is not told to exist");
        world.set_option("PasskeyEnabled", "false").await;
        world.admin.post(&format!("{path}/registration"), json!({})).await.problem(409, "conflict");
        world.admin.delete(&format!("{path}/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f")).await.problem(404, "not-found");
    }
}
