//! Error messages of passkey ceremonies.

use chancery::append_pending;
use chancery_testkit::on_both_engines;
use chancery_web::now;
use serde_json::json;

use crate::authenticator::{Authenticator, BACKED_UP, PRESENT, VERIFIED, allow};

type Fault = fn(&mut Authenticator);

/// Faults of both ceremonies, with their messages. The library reports each in other words.
const FAULTS: [(Fault, &str); 8] = [
    (
        |one| {
            one.client_data_overrides = json!({ "challenge": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" });
        },
        "The answer is to another challenge. Begin the ceremony again.",
    ),
    (
        |one| one.client_data_overrides = json!({ "type": "payment.get" }),
        "The answer is not that of this ceremony.",
    ),
    (
        |one| one.client_data_overrides = json!({ "origin": "https://evil.example" }),
        "the page's origin is not allowed",
    ),
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
    /// D: a stored passkey that cannot be read is a server error, not the caller's.
    async fn a_stored_passkey_that_cannot_be_read_is_a_server_error(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        let device = Authenticator::new(1);
        device.register(&world, &user).await.expect(201);
        world.sql(vec![("UPDATE passkey_credential SET kept = ?1", vec![chancery_record::Value::Bytes(vec![0])])]).await;
        let path = world.path(&format!("/PasskeyCredential/user/{}/registration", crate::id(&user)));
        world.admin.post(&path, json!({})).await.problem(500, "internal");
    }

    /// B10: a failed registration or sign-in has our own message, never a library's.
    async fn failed_ceremonies_have_our_own_messages(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        for (fault, message) in FAULTS {
            let mut device = Authenticator::new(1);
            fault(&mut device);
            let problem = device.register(&world, &user).await.problem(400, "invalid-request");
            assert_eq!(problem["detail"], message);
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
        let events_of_clones = world.path("/Event?type=platform.userstore.passkeycredential.clone-suspected");
        let events = world.admin.get(&events_of_clones).await.is(200).json();
        let passkeys = world.admin.get(&world.path(&format!("/PasskeyCredential/user/{}", crate::id(&user)))).await.is(200).json();
        assert_eq!((events["items"].as_array().unwrap().len(), &events["items"][0]["subject"]), (1, &passkeys[0]["id"]));
        device.uses = 2;
        for (fault, message) in FAULTS {
            let mut faulty = device;
            fault(&mut faulty);
            let problem = faulty.sign_in(&world, &user).await.problem(400, "invalid-request");
            assert_eq!(problem["detail"], message);
            device = Authenticator {
                flags: PRESENT | VERIFIED, relying_party: "example.org", client_data_overrides: json!({}), sent: usize::MAX, ..faulty
            };
        }
        device.signs = false;
        let problem = device.sign_in(&world, &user).await.problem(400, "invalid-request");
        assert_eq!(problem["detail"], "The signature is not that of the passkey.");
        device.signs = true;
        device.sign_in(&world, &user).await.expect(200);
    }
}
