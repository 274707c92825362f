//! What a refused ceremony says.

use chancery::append_pending;
use chancery_testkit::on_both_engines;
use chancery_web::now;
use serde_json::json;

use super::authenticator::{Authenticator, BACKED_UP, PRESENT, VERIFIED, allow};

type Lie = fn(&mut Authenticator);

/// What is wrong in both ceremonies alike, and how it is told. The library tells each in other words.
const LIES: [(Lie, &str); 8] = [
    (
        |one| one.lies = json!({ "challenge": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }),
        "The answer is to another challenge. Begin the ceremony again.",
    ),
    (|one| one.lies = json!({ "type": "payment.get" }), "The answer is not that of this ceremony."),
    (|one| one.lies = json!({ "origin": "https://evil.example" }), "the page's origin is not allowed"),
    (
        |one| one.relying_party = "evil.example",
        "The authenticator answered for another relying party than the store's.",
    ),
    (|one| one.flags = VERIFIED, "Nobody touched the authenticator."),
    (|one| one.flags = PRESENT, "The authenticator did not verify its user, as the store asks for."),
    (|one| one.flags |= BACKED_UP, "What the authenticator says of backups contradicts what it said before."),
    (|one| one.sent = 36, "The authenticator's answer cannot be read. Begin the ceremony again."),
];

on_both_engines! {
    /// D: a passkey that cannot be read is our fault, not the caller's.
    async fn a_kept_passkey_that_cannot_be_read_is_told_as_ours(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        let device = Authenticator::new(1);
        device.register(&world, &user).await.expect(201);
        world.sql(vec![("UPDATE passkey_credential SET kept = ?1", vec![chancery_record::Value::Bytes(vec![0])])]).await;
        let path = world.path(&format!("/PasskeyCredential/user/{}/registration", crate::id(&user)));
        world.admin.post(&path, json!({})).await.problem(500, "internal");
    }

    /// B10: a refused registration or sign-in is told in our words, never a library's.
    async fn ceremonies_are_refused_in_our_words(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        for (lie, words) in LIES {
            let mut device = Authenticator::new(1);
            lie(&mut device);
            let problem = device.register(&world, &user).await.problem(400, "invalid-request");
            assert_eq!(problem["detail"], words);
        }
        let mut device = Authenticator::new(1);
        device.register(&world, &user).await.expect(201);
        let problem = device.register(&world, &user).await.problem(409, "conflict");
        assert_eq!(problem["detail"], "the user has this credential already");
        device.uses = 1;
        device.sign_in(&world, &user).await.expect(200);
        let again = device.sign_in(&world, &user).await.problem(400, "invalid-request");
        assert_eq!(again["detail"], "The passkey's count of uses did not grow: there may be a copy of it.");
        append_pending(&world.app, now()).await.unwrap();
        let suspected = world.path("/Event?type=platform.userstore.passkeycredential.clone-suspected");
        let told = world.admin.get(&suspected).await.is(200).json();
        let passkeys = world.admin.get(&world.path(&format!("/PasskeyCredential/user/{}", crate::id(&user)))).await.is(200).json();
        assert_eq!((told["items"].as_array().unwrap().len(), &told["items"][0]["subject"]), (1, &passkeys[0]["id"]));
        device.uses = 2;
        for (lie, words) in LIES {
            let mut lying = device;
            lie(&mut lying);
            let problem = lying.sign_in(&world, &user).await.problem(400, "invalid-request");
            assert_eq!(problem["detail"], words);
            device = Authenticator {
                flags: PRESENT | VERIFIED, relying_party: "example.org", lies: json!({}), sent: usize::MAX, ..lying
            };
        }
        device.signs = false;
        let problem = device.sign_in(&world, &user).await.problem(400, "invalid-request");
        assert_eq!(problem["detail"], "The signature is not that of the passkey.");
        device.signs = true;
        device.sign_in(&world, &user).await.expect(200);
    }
}
