//! The known models of authenticators: imported, refreshed, and the consequences for passkeys.

use std::{
    collections::HashMap,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    sync::{LazyLock, Mutex},
};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use chancery_record::Timestamp;
use chancery_store::{Error, Mode, raw};
use chancery_testkit::{World, on_both_engines};
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::{
    authenticator::{Authenticator, allow},
    id, pointers,
    signing::texts,
};

const PATH: &str = "/api/management/v2/passkey-trust/mds";
const NAME: &str = "mds.example";
const MAKE: &str = "8446ccb9-ab1d-b374-750b-2367ff6f3a1f";

/// A metadata service of the tests' own.
struct Service {
    root: CertifiedIssuer<'static, KeyPair>,
    key: KeyPair,
    leaf: Certificate,
}

static SERVICE: LazyLock<Service> = LazyLock::new(|| {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![NAME.to_owned()]).unwrap().signed_by(&key, &root).unwrap();
    Service { root, key, leaf }
});

fn part(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The signed text with this number and these entries.
fn signed(number: i64, entries: &Value) -> String {
    let header = json!({ "alg": "ES256", "x5c": [BASE64_STANDARD.encode(SERVICE.leaf.der())] });
    let payload = json!({ "no": number, "nextUpdate": "2199-01-01", "entries": entries });
    let text = format!("{}.{}", part(header.to_string().as_bytes()), part(payload.to_string().as_bytes()));
    let key =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SERVICE.key.serialize_der()).unwrap();
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("{text}.{}", part(signature.as_ref()))
}

fn entry(make: &str, status: &str) -> Value {
    json!({
        "aaguid": make, "statusReports": [{ "status": status }],
        "metadataStatement": { "description": "A key of metal", "attestationTypes": ["basic_full"] },
    })
}

/// The answers of the service, by path: one path a world.
static DOCUMENTS: LazyLock<Mutex<HashMap<String, Vec<u8>>>> = LazyLock::new(Mutex::default);

/// The port of the service, which answers one request a connection.
static PORT: LazyLock<u16> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { continue };
            let (mut head, mut bytes) = (Vec::new(), [0; 1024]);
            while !head.ends_with(b"\r\n\r\n") {
                match connection.read(&mut bytes) {
                    Ok(read) if read > 0 => head.extend_from_slice(&bytes[..read]),
                    _ => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let document = DOCUMENTS.lock().unwrap().get(path).cloned();
            let status = if document.is_some() { "200 OK" } else { "404 Not Found" };
            let body = document.unwrap_or_default();
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(&body));
        }
    });
    port
});

fn path_of(folder: &Path) -> String {
    format!("/{}", folder.file_name().unwrap().to_str().unwrap())
}

/// The arguments that make a server trust the service and fetch from it.
fn words(folder: &Path) -> Vec<String> {
    let root = folder.join("root.pem");
    std::fs::write(&root, SERVICE.root.pem()).unwrap();
    let url = format!("http://127.0.0.1:{}{}", *PORT, path_of(folder));
    let words = ["--mds-root", root.to_str().unwrap(), "--mds-name", NAME, "--mds-url", &url];
    words.map(str::to_owned).to_vec()
}

fn publish(world: &World, text: Option<&str>) {
    let path = path_of(&world.database.folder());
    let mut documents = DOCUMENTS.lock().unwrap();
    match text {
        Some(text) => documents.insert(path, text.as_bytes().to_vec()),
        None => documents.remove(&path),
    };
}

async fn status(world: &World) -> Value {
    world.admin.get(PATH).await.is(200).json()
}

async fn import(world: &World, text: &str) -> chancery_testkit::Answer {
    world.admin.post(&format!("{PATH}/signed-offline-import"), json!({ "signedBlobJwt": text })).await
}

async fn refresh(world: &World) -> Value {
    world.admin.post(&format!("{PATH}/refresh"), json!({})).await.is(200).json()
}

/// The newest entry of the configuration's trail.
async fn newest_entry(world: &World) -> Value {
    let path = "/api/management/v2/CustomAuditTrail?sortOrder=descending&count=1";
    world.admin.get(path).await.is(200).json()[0].clone()
}

on_both_engines! {
    async fn nothing_is_known_at_first(world: World) {
        let empty = json!({
            "hasLastKnownGoodSnapshot": false, "snapshotNumber": null, "snapshotVersion": null, "refreshedOn": null,
            "nextUpdateOn": null, "entryCount": 0, "lastRefreshError": null,
        });
        assert_eq!(status(&world).await, empty);
        let mut expected = empty.clone();
        expected["lastRefreshError"] = json!("No source is configured.");
        assert_eq!(refresh(&world).await, expected);
        assert_eq!(status(&world).await, expected);
        // without a configured root only FIDO is trusted
        let problem = import(&world, &signed(1, &json!([]))).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/signedBlobJwt"]);
        assert!(problem["detail"].as_str().unwrap().contains("does not lead to a root that is trusted"), "{problem}");
        for malformed in ["", "a.b", "a.b.c.d", "a.b.!", "..."] {
            assert_eq!(pointers(&import(&world, malformed).await.problem(400, "invalid-request")), ["/signedBlobJwt"]);
        }
        assert_eq!(status(&world).await, expected);
        let customers = world.client("customers", &[("CustomerAdmin", None, None)]).await;
        customers.get(PATH).await.problem(403, "forbidden");
        customers.post(&format!("{PATH}/refresh"), json!({})).await.problem(403, "forbidden");
    }
}

on_both_engines! {
    [words]
    async fn an_import_counts_and_never_goes_back(world: World) {
        let entries = json!([entry(MAKE, "FIDO_CERTIFIED"), { "aaguid": "none" }, { "aaid": "4e4e#4005", "statusReports": [] }]);
        let seven = signed(7, &entries);
        let shown = import(&world, &seven).await.is(200).json();
        assert_eq!((&shown["hasLastKnownGoodSnapshot"], &shown["snapshotNumber"]), (&json!(true), &json!("7")));
        assert!(shown["snapshotVersion"].as_str().unwrap().starts_with("7-"));
        assert_eq!((&shown["entryCount"], &shown["nextUpdateOn"]), (&json!(2), &json!("2199-01-01T00:00:00.000Z")));
        assert!(shown["refreshedOn"].is_string() && shown["lastRefreshError"].is_null());
        assert_eq!(shown.as_object().unwrap().len(), 7);
        assert_eq!(status(&world).await, shown);
        // omitted content is named in the trail, without its bytes
        let audit = newest_entry(&world).await;
        assert_eq!((&audit["area"], &audit["action"], &audit["primaryKey"]), (&json!("TrustSnapshot"), &json!("Modified"), &json!("mds")));
        let content: Value = serde_json::from_str(audit["currentContent"].as_str().unwrap()).unwrap();
        assert_eq!((&content["snapshotNumber"], &content["skippedEntryCount"]), (&json!(7), &json!(1)));
        assert_eq!(content["skippedBecause"], "entry 1: a member is missing or of another form");
        assert!(audit.to_string().len() < 4000);
        let event = texts(&world, "SELECT envelope FROM outbox_event ORDER BY id").await.pop().unwrap();
        assert!(event.contains("platform.management.trustsnapshot.refreshed"), "{event}");

        // the same number changes nothing, a lower one is refused
        assert_eq!(import(&world, &signed(7, &json!([]))).await.is(200).json(), shown);
        let problem = import(&world, &signed(6, &json!([]))).await.problem(409, "conflict");
        assert!(problem["detail"].as_str().unwrap().contains("older than snapshot 7"), "{problem}");
        let middle = seven.len() / 2;
        let other = if seven[middle..].starts_with('A') { "B" } else { "A" };
        let tampered = format!("{}{other}{}", &seven[..middle], &seven[middle + 1..]);
        let problem = import(&world, &tampered).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/signedBlobJwt"]);
        assert_eq!(status(&world).await, shown);
        assert_eq!(newest_entry(&world).await, audit, "nothing was changed");
        let dry = format!("{PATH}/signed-offline-import?dryRun=true");
        let tried = world.admin.post(&dry, json!({ "signedBlobJwt": signed(8, &json!([])) })).await.is(200).json();
        assert_eq!(tried["snapshotNumber"], "8");
        assert_eq!(status(&world).await, shown);
        assert_eq!(import(&world, &signed(8, &json!([]))).await.is(200).json()["entryCount"], 0);
    }

    /// One of the size of FIDO's.
    async fn a_large_text_is_imported(world: World) {
        let icon = "A".repeat(12_000);
        let entries: Vec<Value> = (0..450_u128).map(|number| {
            let mut entry = entry(&uuid::Uuid::from_u128(number + 1).to_string(), "FIDO_CERTIFIED");
            entry["metadataStatement"]["icon"] = json!(icon);
            entry
        }).collect();
        let text = signed(1, &json!(entries));
        assert!(text.len() > 7_000_000, "{}", text.len());
        assert_eq!(import(&world, &text).await.is(200).json()["entryCount"], 450);
    }

    async fn a_refresh_that_fails_keeps_what_is_known(world: World) {
        let failed = refresh(&world).await;
        assert_eq!(failed["lastRefreshError"], "The source does not answer well: the host answered 404 instead of 200.");
        assert_eq!(failed["hasLastKnownGoodSnapshot"], false);
        publish(&world, Some(&signed(3, &json!([entry(MAKE, "REVOKED")]))));
        let good = refresh(&world).await;
        assert_eq!((&good["snapshotNumber"], &good["entryCount"], &good["lastRefreshError"]), (&json!("3"), &json!(1), &json!(null)));
        let (forged, older) = (format!("{}AAAA", signed(4, &json!([]))), signed(2, &json!([])));
        for (text, word) in [(forged.as_str(), "is refused"), (&older, "older than snapshot 3"), ("\u{fffd}", "is refused")] {
            publish(&world, Some(text));
            let mut status_without_error = refresh(&world).await;
            assert!(status_without_error["lastRefreshError"].as_str().unwrap().contains(word), "{status_without_error}");
            status_without_error["lastRefreshError"] = json!(null);
            assert_eq!(status_without_error, good);
        }
        // the same again is no failure
        publish(&world, Some(&signed(3, &json!([]))));
        assert_eq!(refresh(&world).await, good);
    }

    async fn one_process_refreshes_when_it_is_due(world: World) {
        let (store, context) = (&world.app.store, &world.app.context);
        let now = chancery_web::now();
        let due = async |later: i64| chancery::refresh_due(store, context, Timestamp(now.0 + later)).await.unwrap();
        let minute = 60_000;
        assert!(due(0).await, "the first is due at once");
        assert!(status(&world).await["lastRefreshError"].is_string());
        assert!(!due(4 * minute).await, "after a failure it rests");
        publish(&world, Some(&signed(1, &json!([]))));
        assert!(due(7 * minute).await);
        let shown = status(&world).await;
        assert_eq!((&shown["snapshotNumber"], &shown["lastRefreshError"]), (&json!("1"), &json!(null)));
        assert!(!due(23 * 60 * minute).await, "daily");
        assert!(due(26 * 60 * minute).await);
        let metrics = world.admin.get("/metrics").await.is(200);
        let metrics = String::from_utf8_lossy(&metrics.bytes).into_owned();
        let due_on = metrics.lines().find(|line| line.starts_with("chancery_passkey_trust_due_time_seconds "));
        assert_eq!(due_on, Some("chancery_passkey_trust_due_time_seconds 7226582400"));
        assert!(metrics.contains("\nchancery_passkey_trust_failures 0\n"));
    }

    /// - Effect of `UserStore options.PasskeyAllowedAaguids`: Only authenticators of these models can be registered.
    async fn passkeys_are_known_by_their_make(world: World) {
        allow(&world).await;
        let user = world.user("ada").await;
        register(&world, &user, 1).await.expect(201);
        let shown = async || {
            let path = world.path(&format!("/passkey-security/users/{}", id(&user)));
            let overview = world.admin.get(&path).await.is(200).json();
            let credential = &overview["credentials"][0];
            let count = overview["readiness"]["usableCredentialCount"].clone();
            (credential["authenticatorName"].clone(), credential["isUsable"].clone(), count)
        };
        assert_eq!(shown().await, (json!(null), json!(true), json!(1)), "nothing is known");
        import(&world, &signed(1, &json!([entry(MAKE, "FIDO_CERTIFIED")]))).await.expect(200);
        assert_eq!(shown().await, (json!("A key of metal"), json!(true), json!(1)));
        register(&world, &user, 2).await.expect(201);
        import(&world, &signed(2, &json!([entry(MAKE, "USER_KEY_REMOTE_COMPROMISE")]))).await.expect(200);
        assert_eq!(shown().await, (json!("A key of metal"), json!(false), json!(0)), "from the next call on");
        let problem = register(&world, &user, 3).await.problem(400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains("compromised"), "{problem}");
        import(&world, &signed(3, &json!([]))).await.expect(200);
        assert_eq!(shown().await, (json!(null), json!(true), json!(2)));
        // a list requires proof, which this authenticator does not give, at any setting of attestation
        world.set_option("PasskeyAllowedAaguids", MAKE).await;
        for attestation in ["none", "indirect", "direct"] {
            world.set_option("PasskeyAttestation", attestation).await;
            let start = world.path(&format!("/PasskeyCredential/user/{}/registration", id(&user)));
            let begun = world.admin.post(&start, json!({})).await.is(200).json();
            assert_eq!(begun["publicKey"]["attestation"], json!("direct"), "{begun}");
            let problem = register(&world, &user, 4).await.problem(400, "invalid-request");
            assert!(problem["detail"].as_str().unwrap().contains("not attested"), "{attestation}: {problem}");
        }
        // a list of blocked models needs no proof: an authenticator of the model is refused by its own statement
        world.set_option("PasskeyAllowedAaguids", "").await;
        world.set_option("PasskeyAttestation", "none").await;
        register(&world, &user, 5).await.expect(201);
        world.set_option("PasskeyBlockedAaguids", MAKE).await;
        let problem = register(&world, &user, 6).await.problem(400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains("not admitted"), "{problem}");
    }
}

/// Sources that accept connections and do not answer, by folder.
static SILENT: LazyLock<Mutex<HashMap<String, TcpListener>>> = LazyLock::new(Mutex::default);

/// The arguments that make a server wait for a source.
fn waiting(folder: &Path) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    SILENT.lock().unwrap().insert(path_of(folder), listener);
    ["--mds-url", &url].map(str::to_owned).to_vec()
}

/// Polls a number until it is one, for half of the timeout of a source.
async fn is_one(world: &World, text: &'static str) {
    for _ in 0..600 {
        if crate::signing::texts(world, text).await == ["1"] {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{text}");
}

on_both_engines! {
    [waiting]
    /// B6: the key of a request that runs for longer than 10 seconds is held while it runs.
    async fn the_key_of_a_long_request_is_held(world: World) {
        let import_again = async || {
            let key = [("idempotency-key", "k"), ("content-type", "application/json")];
            world.admin.send(http::Method::POST, &format!("{PATH}/refresh"), &key, b"{}".to_vec()).await
        };
        let meanwhile = async {
            is_one(&world, "SELECT CAST(count(*) AS TEXT) FROM idempotent_answer").await;
            // as if it had begun long ago: only the renewal retains the key
            let began = world.app.store.run("Test", Mode::Write, None, |tx| {
                raw::queue(tx, "UPDATE idempotent_answer SET started_on = 1", vec![])
            });
            began.await.map_err(|error: Error| error.to_string()).unwrap();
            is_one(&world, "SELECT CAST(count(*) AS TEXT) FROM idempotent_claim").await;
            let refused = import_again().await;
            assert!(refused.header("retry-after").is_some());
            refused.problem(409, "conflict");
            let listener = SILENT.lock().unwrap().remove(&path_of(&world.database.folder())).unwrap();
            listener.set_nonblocking(true).unwrap();
            let (mut one, _) = listener.accept().unwrap();
            one.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
            assert!(listener.accept().is_err(), "it was asked once");
        };
        let (first, ()) = tokio::join!(import_again(), meanwhile);
        let first = first.is(200);
        assert!(first.header("idempotency-replayed").is_none());
        let again = import_again().await.is(200);
        assert_eq!((again.header("idempotency-replayed"), &again.bytes), (Some("true"), &first.bytes));
    }
}

/// Registers a passkey with an authenticator that states its model without proof.
async fn register(world: &World, user: &Value, number: u8) -> chancery_testkit::Answer {
    let make = uuid::Uuid::parse_str(MAKE).unwrap();
    Authenticator { make, ..Authenticator::new(number) }.register(world, user).await
}
