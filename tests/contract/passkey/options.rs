//! The options of passkeys and of access passes.

use chancery_record::Value as Bound;
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    authenticator::{Authenticator, PRESENT, allow},
    security,
};
use crate::{id, pointers, signing::millis};

/// What a registration for this user begins with.
async fn begin(world: &World, user: &Value) -> Value {
    let path = world.path(&format!("/PasskeyCredential/user/{}/registration", id(user)));
    world.admin.post(&path, json!({})).await.is(200).json()["publicKey"].clone()
}

/// Whether an old enough passkey is what keeps the user's password from removal.
async fn lacks_mature_passkey(world: &World, user: &Value) -> bool {
    let overview = world.admin.get(&security(world, &format!("/users/{}", id(user)))).await.is(200).json();
    overview["readiness"]["blockingReasons"]
        .as_array()
        .unwrap()
        .contains(&json!("MatureBindingLineageMissing"))
}

on_both_engines! {
    /// PasskeyRelyingPartyName is what authenticators show; without one they show the relying party's id.
    async fn authenticators_show_the_name_of_the_relying_party(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        assert_eq!(begin(&world, &user).await["rp"], json!({ "id": "example.org", "name": "example.org" }));
        world.set_option("PasskeyRelyingPartyName", "Harbour Office").await;
        assert_eq!(begin(&world, &user).await["rp"], json!({ "id": "example.org", "name": "Harbour Office" }));
    }

    /// PasskeyUserVerification: authenticators are asked for it, and where it is required one that did none is refused.
    async fn a_passkey_verifies_its_user_as_the_store_says(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        let unverified = |number| Authenticator { flags: PRESENT, ..Authenticator::new(number) };
        for (number, wanted, status) in [(1, "required", 400), (2, "preferred", 201), (3, "discouraged", 201)] {
            world.set_option("PasskeyUserVerification", wanted).await;
            let asked = begin(&world, &user).await;
            assert_eq!(asked["authenticatorSelection"]["userVerification"], json!(wanted));
            unverified(number).register(&world, &user).await.expect(status);
        }
    }

    /// PasskeyAllowedOrigins: an authenticator answers from a page of one of them, or is refused.
    async fn passkeys_come_from_pages_of_the_allowed_origins(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        for (number, origins, status) in [
            (1, "https://login.example.org", 400),
            (2, "https://login.example.org, https://example.org", 201),
        ] {
            world.set_option("PasskeyAllowedOrigins", origins).await;
            Authenticator::new(number).register(&world, &user).await.expect(status);
        }
    }

    /// PasskeyAttestation is what authenticators are asked for; they may prove nothing, as long as no list of models wants proof.
    async fn authenticators_are_asked_for_attestation_as_the_store_says(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        for (number, wanted) in [(1, "none"), (2, "indirect"), (3, "direct"), (4, "enterprise")] {
            world.set_option("PasskeyAttestation", wanted).await;
            assert_eq!(begin(&world, &user).await["attestation"], json!(wanted));
            Authenticator::new(number).register(&world, &user).await.expect(201);
        }
    }

    /// PasskeyBlockedAaguids refuses the models that it lists, and no others.
    async fn a_blocked_model_is_not_registered(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        let make = uuid::Uuid::from_u128(0x8446_ccb9_ab1d_b374_750b_2367_ff6f_3a1f);
        let of_make = |number, make| Authenticator { make, ..Authenticator::new(number) };
        of_make(1, make).register(&world, &user).await.expect(201);
        let blocked = format!("{}, {make}", uuid::Uuid::from_u128(1));
        world.set_option("PasskeyBlockedAaguids", &blocked).await;
        of_make(2, make).register(&world, &user).await.problem(400, "invalid-request");
        of_make(3, uuid::Uuid::from_u128(1)).register(&world, &user).await.problem(400, "invalid-request");
        of_make(4, uuid::Uuid::from_u128(2)).register(&world, &user).await.expect(201);
    }

    /// PasskeyBindingMaturity: a passkey that was used counts for the removal of the password once it is this old.
    async fn a_passkey_matures_as_the_store_says(world: World) {
        allow(&world).await;
        world.set_option("PasskeyBindingMaturity", "2.00:00:00").await;
        let user = world.user("ada").await;
        let mut device = Authenticator::new(1);
        device.register(&world, &user).await.expect(201);
        device.uses = 1;
        device.sign_in(&world, &user).await.expect(200);
        for (hours, lacks) in [(47, true), (2, false)] {
            let older = "UPDATE passkey_credential SET created_on = created_on - ?1";
            world.sql(vec![(older, vec![Bound::Int(hours * 3_600_000)])]).await;
            assert_eq!(lacks_mature_passkey(&world, &user).await, lacks);
        }
        world.set_option("PasskeyBindingMaturity", "7.00:00:00").await;
        assert!(lacks_mature_passkey(&world, &user).await);
    }

    /// PasskeyRequiredVerifiedSecurityContactCount
    async fn contacts_count_for_the_removal_of_the_password(world: World) {
        let user = world.user("ada").await;
        let reasons = async || {
            let overview = world.admin.get(&security(&world, &format!("/users/{}", id(&user)))).await.is(200).json();
            overview["readiness"]["blockingReasons"].clone()
        };
        for (count, lacks) in [("1", true), ("0", false)] {
            world.set_option("PasskeyRequiredVerifiedSecurityContactCount", count).await;
            let is_named = reasons().await.as_array().unwrap().contains(&json!("InsufficientVerifiedSecurityContacts"));
            assert_eq!(is_named, lacks, "{count}");
        }
    }

    /// PasskeyRequiredCredentialCount: so many passkeys, and a user has what the removal of the password needs.
    async fn passkeys_count_for_the_removal_of_the_password(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        Authenticator::new(1).register(&world, &user).await.expect(201);
        for (count, lacks) in [("2", true), ("1", false)] {
            world.set_option("PasskeyRequiredCredentialCount", count).await;
            let overview = world.admin.get(&security(&world, &format!("/users/{}", id(&user)))).await.is(200).json();
            let reasons = overview["readiness"]["blockingReasons"].as_array().unwrap();
            assert_eq!(reasons.contains(&json!("InsufficientUsableCredentials")), lacks, "{count}");
        }
    }

    /// TemporaryAccessPassDefaultLifetime, TemporaryAccessPassMaxLifetime and TemporaryAccessPassOneTimeUse.
    async fn access_passes_last_as_the_store_says(world: World) {
        let user = world.user("ada").await;
        let passes = security(&world, "/temporary-access-passes");
        world.set_option("TemporaryAccessPassDefaultLifetime", "00:30:00").await;
        world.set_option("TemporaryAccessPassMaxLifetime", "02:00:00").await;
        let usual = world.admin.post(&passes, json!({ "userId": id(&user) })).await.is(201).json();
        assert_eq!(millis(&usual["expiresOn"]) - millis(&usual["validFrom"]), 30 * 60_000);
        world.admin.delete(&format!("{passes}/{}", id(&usual))).await.expect(204);
        let lasting = |minutes: i64| json!({ "userId": id(&user), "lifetimeMinutes": minutes });
        let problem = world.admin.post(&passes, lasting(121)).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/lifetimeMinutes"]);
        let longest = world.admin.post(&passes, lasting(120)).await.is(201).json();
        world.admin.delete(&format!("{passes}/{}", id(&longest))).await.expect(204);

        let redemption = format!("{passes}/redemption");
        world.set_option("LoginThrottlingEnabled", "false").await;
        for (once, second) in [("true", 400), ("false", 200)] {
            world.set_option("TemporaryAccessPassOneTimeUse", once).await;
            let pass = world.admin.post(&passes, json!({ "userId": id(&user) })).await.is(201).json();
            let shown = json!({ "loginName": "ada", "value": pass["value"] });
            world.admin.post(&redemption, shown.clone()).await.expect(200);
            world.admin.post(&redemption, shown).await.expect(second);
        }
    }
}
