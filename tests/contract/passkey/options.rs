//! The options of passkeys and of access passes.

use chancery_record::Value as Bound;
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::security;
use crate::{
    authenticator::{Authenticator, PRESENT, allow},
    id, pointers,
    signing::millis,
};

/// The options of a registration for this user.
async fn begin(world: &World, user: &Value) -> Value {
    let path = world.path(&format!("/PasskeyCredential/user/{}/registration", id(user)));
    world.admin.post(&path, json!({})).await.is(200).json()["publicKey"].clone()
}

/// Whether the missing mature passkey prevents the removal of the user's password.
async fn lacks_mature_passkey(world: &World, user: &Value) -> bool {
    let overview = world.admin.get(&security(world, &format!("/users/{}", id(user)))).await.is(200).json();
    overview["readiness"]["blockingReasons"]
        .as_array()
        .unwrap()
        .contains(&json!("MatureBindingLineageMissing"))
}

on_both_engines! {
    /// PasskeyRelyingPartyName is shown by authenticators; without it they show the relying party's id.
    ///
    /// - Effect of `UserStore options.PasskeyRelyingPartyId`: Passkeys are bound to this domain.
    /// - Effect of `UserStore options.PasskeyRelyingPartyName`: Authenticators show this name when a passkey is made.
    async fn registration_options_have_the_name_of_the_relying_party(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        assert_eq!(begin(&world, &user).await["rp"], json!({ "id": "example.org", "name": "example.org" }));
        world.set_option("PasskeyRelyingPartyName", "Harbour Office").await;
        assert_eq!(begin(&world, &user).await["rp"], json!({ "id": "example.org", "name": "Harbour Office" }));
    }

    /// PasskeyUserVerification: it is requested from authenticators, and if it is required, a registration without it is
    /// rejected.
    ///
    /// - Effect of `UserStore options.PasskeyUserVerification`: Authenticators must, should or need not verify their user.
    async fn user_verification_is_requested_as_configured(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        let unverified = |number| Authenticator { flags: PRESENT, ..Authenticator::new(number) };
        for (number, setting, status) in [(1, "required", 400), (2, "preferred", 201), (3, "discouraged", 201)] {
            world.set_option("PasskeyUserVerification", setting).await;
            let options_of_registration = begin(&world, &user).await;
            assert_eq!(options_of_registration["authenticatorSelection"]["userVerification"], json!(setting));
            unverified(number).register(&world, &user).await.expect(status);
        }
    }

    /// PasskeyAllowedOrigins: the ceremony must come from a page of one of them.
    ///
    /// - Effect of `UserStore options.PasskeyAllowedOrigins`: Passkeys are accepted from pages of these origins only.
    async fn passkeys_are_accepted_only_from_allowed_origins(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        for (number, origins, status) in [
            (1, "https://login.example.org", 400),
            (2, "https://login.example.org, https://example.org/idp", 201),
        ] {
            world.set_option("PasskeyAllowedOrigins", origins).await;
            Authenticator::new(number).register(&world, &user).await.expect(status);
        }
    }

    /// PasskeyAttestation is requested from authenticators; they may send none, as long as no list of models requires it.
    ///
    /// - Effect of `UserStore options.PasskeyAttestation`: Registrations request this attestation; with `direct` or `enterprise` the
    ///   certificates of a known model must be those of the model.
    async fn attestation_is_requested_as_configured(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        for (number, setting) in [(1, "none"), (2, "indirect"), (3, "direct"), (4, "enterprise")] {
            world.set_option("PasskeyAttestation", setting).await;
            assert_eq!(begin(&world, &user).await["attestation"], json!(setting));
            Authenticator::new(number).register(&world, &user).await.expect(201);
        }
    }

    /// PasskeyBlockedAaguids rejects the listed models, and no others.
    ///
    /// - Effect of `UserStore options.PasskeyBlockedAaguids`: Authenticators of these models cannot be registered.
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

    /// PasskeyBindingMaturity: a used passkey counts for the removal of the password from this age on.
    ///
    /// - Effect of `UserStore options.PasskeyBindingMaturity`: A passkey counts for the removal of the password once it is this old and was
    ///   used.
    async fn a_passkey_matures_as_configured(world: World) {
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
    ///
    /// - Effect of `UserStore options.PasskeyRequiredVerifiedSecurityContactCount`: A user needs this number of verified contacts before
    ///   the password can be removed.
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

    /// PasskeyRequiredCredentialCount: the number of passkeys required for the removal of the password.
    ///
    /// - Effect of `UserStore options.PasskeyRequiredCredentialCount`: A user needs this number of passkeys before the password can be
    ///   removed.
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
    ///
    /// - Effect of `UserStore options.TemporaryAccessPassDefaultLifetime`: An access pass is valid for this time, unless its creation
    ///   requests another.
    /// - Effect of `UserStore options.TemporaryAccessPassMaxLifetime`: Access passes that would last longer are refused.
    /// - Effect of `UserStore options.TemporaryAccessPassOneTimeUse`: An access pass works once, or until it expires, unless its creation
    ///   requests otherwise.
    async fn lifetimes_of_access_passes_are_as_configured(world: World) {
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
            let credentials = json!({ "loginName": "ada", "value": pass["value"] });
            world.admin.post(&redemption, credentials.clone()).await.expect(200);
            world.admin.post(&redemption, credentials).await.expect(second);
        }
    }
}
