//! Texts, times and ids in bodies, paths and filters.

use chancery::services;
use chancery_record::Kind;
use chancery_resource::Action;
use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::{each, encode, id, signing::set_mail_server};

/// The pointers of a problem's errors.
fn pointers(problem: &Value) -> Vec<&str> {
    each(&problem["errors"], "pointer")
}

on_both_engines! {
    /// Section 15: typed text is trimmed, then checked; keys and values are taken unchanged.
    async fn typed_text_is_trimmed(world: World) {
        let body = json!({
            "loginName": " ada ", "firstName": "Ada\t", "lastName": " \u{2003}", "emailAddress": "ada@example.com ",
            "phoneNumber": " +49 30 123456 ", "website": " https://example.com/ada",
        });
        let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
        assert_eq!(user["loginName"], "ada");
        assert_eq!(user["firstName"], "Ada");
        assert_eq!(user["lastName"], Value::Null);
        assert_eq!(user["emailAddress"], "ada@example.com");
        assert_eq!(user["phoneNumber"], "+49 30 123456");
        assert_eq!(user["website"], "https://example.com/ada");
        world.admin.post(&world.path("/User"), json!({ "loginName": "ADA " })).await.problem(409, "conflict");
        let blank = world.admin.post(&world.path("/User"), json!({ "loginName": " " })).await.problem(400, "invalid-request");
        assert_eq!(pointers(&blank), ["/loginName"]);
        let group = world.group(" Sales ").await;
        assert_eq!(group["name"], "Sales");
        let entries = world.path(&format!("/Group/{}/GroupMetadata", id(&group)));
        world.admin.post(&entries, json!({ "key": "k", "value": " kept " })).await.expect(200);
        assert_eq!(world.admin.get(&format!("{entries}/k")).await.is(200).json()["value"], " kept ");
        world.admin.post(&entries, json!({ "key": " k", "value": "" })).await.problem(400, "invalid-request");
    }

    /// B5, section 15: an import with telephone numbers in the forms of directories, years 9999 and trailing
    /// blanks passes, and its values are answered unchanged.
    async fn imports_as_directories_hold_them_pass(world: World) {
        let numbers = ["+49 (0)30 / 123-45.6", "030 123456 ext. 12", "x4711", "+1-201-555-0123;ext=7", "112"];
        let users: Vec<Value> = numbers.iter().enumerate().map(|(index, number)| json!({
            "loginName": format!("user{index} "), "phoneNumber": number,
            "userValidTo": "9999-12-31T23:59:59.9999999Z", "userValidFrom": "0001-01-01T00:00:00Z",
        })).collect();
        let created = world.admin.post(&world.path("/User/batch"), json!(users)).await.is(200).json();
        assert_eq!(each(&created, "phoneNumber"), numbers);
        for user in created.as_array().unwrap() {
            assert_eq!(user["userValidTo"], "9999-12-31T23:59:59.999Z");
            assert_eq!(user["userValidFrom"], "0001-01-01T00:00:00.000Z");
        }
        let read = world.admin.get(&world.path(&format!("/User/{}", id(&created[0])))).await.is(200).json();
        assert_eq!(read["userValidTo"], "9999-12-31T23:59:59.999Z");
        let wrong = json!([
            { "loginName": "a", "phoneNumber": "12" }, { "loginName": "b", "userValidTo": "2026-11-21" },
            { "loginName": "c", "userValidTo": "9999-12-31T23:59:59-00:01" },
            { "loginName": "d", "userValidTo": "2026-11-21T09:30:00.0000000001Z" },
        ]);
        let problem = world.admin.post(&world.path("/User/batch"), wrong).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/0/phoneNumber", "/1/userValidTo", "/2/userValidTo", "/3/userValidTo"]);
    }

    /// B5, section 15: a filter compares enumerations without regard to case, and an unknown word is
    /// 400 at its column.
    async fn filters_know_the_words_of_enumerations(world: World) {
        let rules = "/api/management/v2/ClaimRule";
        let body = json!({ "name": "r", "ruleType": "transform", "ruleLevel": "SUBSCRIPTION" });
        world.admin.post(rules, body).await.expect(201);
        let count_of = async |filter: &str| {
            let answer = world.admin.get(&format!("{rules}?filter={}", encode(filter))).await.is(200).json();
            answer.as_array().unwrap().len()
        };
        for filter in ["ruleType eq \"TRANSFORM\"", "ruleType sw \"trans\"", "ruleType co \"NSF\"", "ruleType ew \"Form\"", "ruleType ne \"filter\"", "not (ruleType sw \"f\")"] {
            assert_eq!(count_of(filter).await, 1, "{filter}");
        }
        for filter in ["ruleType eq \"filter\"", "ruleType ne \"transform\"", "ruleType co \"x\"", "ruleType eq null"] {
            assert_eq!(count_of(filter).await, 0, "{filter}");
        }
        for part in ["co", "sw", "ew"] {
            let filter = encode(&format!("ruleType {part} \"\""));
            world.admin.get(&format!("{rules}?filter={filter}")).await.problem(400, "invalid-request");
        }
        let filter = encode("name pr and ruleType eq \"Transfrom\"");
        let problem = world.admin.get(&format!("{rules}?filter={filter}")).await.problem(400, "invalid-request");
        assert!(problem["detail"].as_str().unwrap().contains("column 13:"), "{problem}");
    }

    /// Section 15: ids are read in one form, in bodies, paths, relations and filters.
    async fn ids_have_one_form(world: World) {
        let user = world.user("ada").await;
        let known = id(&user);
        let plain = known.replace('-', "");
        for wrong in [plain.clone(), format!("%7B{known}%7D"), format!("urn:uuid:{known}")] {
            world.admin.get(&world.path(&format!("/User/{wrong}"))).await.problem(400, "invalid-request");
        }
        world.admin.get(&world.path(&format!("/User/{}", known.to_uppercase()))).await.expect(200);
        let stores = world.all("IdpInstance").await;
        let store = id(&stores[0]);
        for (name, status) in [(store.to_owned(), 200), (store.replace('-', ""), 404)] {
            let path = format!("/api/userstore/v2/{name}/administration/User");
            assert_eq!(world.admin.get(&path).await.status.as_u16(), status, "{name}");
        }
        let app = world.all("ClientApp").await[0].clone();
        for (client, status) in [(id(&app).to_owned(), 200), (id(&app).replace('-', ""), 401)] {
            let form = format!("grant_type=client_credentials&client_id={client}&client_secret=the+root+secret+of+the+tests");
            assert_eq!(world.anonymous.ask_for_token(&form).await.status.as_u16(), status, "{client}");
        }
        let group = world.group("g").await;
        let users = world.path(&format!("/Group/{}/users", id(&group)));
        world.admin.post(&users, json!({ "relatedIds": [plain] })).await.problem(400, "invalid-request");
        world.admin.post(&world.path("/User"), json!({ "loginName": "b", "id": plain })).await.problem(400, "invalid-request");
        let filter = encode(&format!("id eq \"{plain}\""));
        world.admin.get(&world.path(&format!("/User?filter={filter}"))).await.problem(400, "invalid-request");
    }

    /// Section 15: `value` of metadata and profiles may be absent or null, which is not empty text.
    async fn values_may_be_none(world: World) {
        let user = world.user("ada").await;
        let group = world.group("g").await;
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let app = world.make("ClientApp", json!({ "name": "a", "subscriptionId": subscription })).await;
        let instance = world.all("IdpInstance").await[0].clone();
        for path in [
            world.path(&format!("/user/{}/UserProfile", id(&user))),
            world.path(&format!("/Group/{}/GroupMetadata", id(&group))),
            format!("/api/management/v2/ClientApp/{}/ClientAppMetadata", id(&app)),
            format!("/api/management/v2/IdpInstance/{}/IdpInstanceMetadata", id(&instance)),
        ] {
            for (key, body) in [
                ("absent", json!({ "key": "absent" })),
                ("null", json!({ "key": "null", "value": null })),
                ("empty", json!({ "key": "empty", "value": "" })),
            ] {
                let created = world.admin.post(&path, body).await;
                assert!(created.status.is_success(), "{created:?}");
                let read = world.admin.get(&format!("{path}/{key}")).await.is(200).json();
                assert_eq!(read["value"], if key == "empty" { json!("") } else { Value::Null }, "{path} {key}");
            }
            let one = format!("{path}/empty");
            let empty = world.admin.get(&one).await.is(200).json();
            let body = json!({ "key": "empty", "concurrencyToken": empty["concurrencyToken"] });
            world.admin.put(&one, body).await.expect(202);
            let read = world.admin.get(&one).await.is(200).json();
            assert_eq!(read["value"], Value::Null, "{path}");
        }
    }

    /// Section 15: a create-only member that differs from the stored one is 400 with its pointer; equal or
    /// absent it is ignored, and version 1 ignores it always.
    async fn create_only_members_stay(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let other = world.other_subscription("elsewhere").await;
        let app = world.make("ClientApp", json!({ "name": "a", "subscriptionId": subscription })).await;
        let one = format!("/api/management/v2/ClientApp/{}", id(&app));
        let with = |token: &Value, owner: &Value| json!({ "name": "a", "subscriptionId": owner, "concurrencyToken": token });
        let token = &app["concurrencyToken"];
        for answer in [world.admin.put(&one, with(token, &other)).await, world.admin.patch(&one, with(token, &other)).await] {
            assert_eq!(pointers(&answer.problem(400, "invalid-request")), ["/subscriptionId"]);
        }
        let merge = [("content-type", "application/merge-patch+json")];
        let body = with(token, &Value::Null).to_string().into_bytes();
        world.admin.send(http::Method::PATCH, &one, &merge, body).await.problem(400, "invalid-request");
        let app = world.admin.put(&one, with(token, &subscription)).await.is(202).json();
        let app = world.admin.put(&one, with(&app["concurrencyToken"], &Value::Null)).await.is(202).json();
        assert_eq!(app["subscriptionId"], subscription);
        let batch = json!([{ "id": app["id"], "name": "a", "subscriptionId": other, "concurrencyToken": app["concurrencyToken"] }]);
        let problem = world.admin.put("/api/management/v2/ClientApp/batch", batch).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/0/subscriptionId"]);
        assert_eq!(world.admin.get(&one).await.is(200).json()["subscriptionId"], subscription);
        // of a user store it is the store of the path
        let user = world.user("ada").await;
        let path = world.path(&format!("/User/{}", id(&user)));
        let body = json!({ "instanceId": other, "concurrencyToken": user["concurrencyToken"] });
        assert_eq!(pointers(&world.admin.patch(&path, body).await.problem(400, "invalid-request")), ["/instanceId"]);
        let old = format!("/api/userstore/v1/default/administration/User/{}", id(&user));
        world.admin.put(&old, json!({ "loginName": "ada", "instanceId": other })).await.expect(202);
        assert_eq!(world.admin.get(&path).await.is(200).json()["instanceId"], user["instanceId"]);
        // a secret is shown once: the answer to its creation can be sent back, another value cannot
        let secret = world.make("ClientAppSecret", json!({ "clientAppId": app["id"], "name": " n " })).await;
        assert_eq!(secret["name"], "n");
        let path = format!("/api/management/v2/ClientAppSecret/{}", id(&secret));
        let again = world.admin.put(&path, secret.clone()).await.is(202).json();
        assert_eq!(again["secret"], Value::Null);
        let body = json!({ "secret": "another secret, long enough", "concurrencyToken": again["concurrencyToken"] });
        assert_eq!(pointers(&world.admin.patch(&path, body).await.problem(400, "invalid-request")), ["/secret"]);
    }

    /// Section 15: `jwks` is read as text or as a JSON object, and answered as text.
    async fn key_sets_are_text_or_an_object(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let app = world.make("ClientApp", json!({ "name": "a", "subscriptionId": subscription })).await;
        let keys = world.anonymous.get("/.well-known/jwks.json").await.is(200).json();
        let set = |name: &str, jwks: Value| json!({ "clientAppId": app["id"], "name": name, "use": "Signing", "jwks": jwks });
        let of_object = world.make("ClientAppKeySet", set("object", keys.clone())).await;
        let of_text = world.make("ClientAppKeySet", set("text", json!(keys.to_string()))).await;
        for created in [of_object, of_text] {
            let read: Value = serde_json::from_str(created["jwks"].as_str().unwrap()).unwrap();
            assert_eq!(read, keys);
        }
        let wrong = set("wrong", json!([1]));
        let problem = world.admin.post("/api/management/v2/ClientAppKeySet", wrong).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/jwks"]);
    }

    /// Section 15: addresses of client apps and names of client certificates are parsed by their type.
    async fn addresses_of_client_apps_are_parsed(world: World) {
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let apps = "/api/management/v2/ClientApp";
        let members = ["clientUri", "logoUri", "backchannelLogoutUri", "frontchannelLogoutUri"];
        for member in members {
            for wrong in ["app.example.com", "http://app.example.com", "javascript:alert(1)", "https://"] {
                let body = json!({ "name": "a", "subscriptionId": subscription, member: wrong });
                let problem = world.admin.post(apps, body).await.problem(400, "invalid-request");
                assert_eq!(pointers(&problem), [format!("/{member}")], "{wrong}");
            }
        }
        let mut good = json!({ "name": "a", "subscriptionId": subscription });
        for (index, member) in members.iter().enumerate() {
            good[*member] = json!(if index % 2 == 0 { "https://app.example.com/x" } else { "http://localhost:3000/x" });
        }
        let app = world.make("ClientApp", good).await;
        let configurations = "/api/management/v2/ClientAppAuthenticationConfiguration";
        for (member, wrong, fits) in [
            ("tlsClientAuthSubjectDn", "client", "CN=client,O=Example"),
            ("tlsClientAuthSanDns", "client example", "client.example.com"),
            ("tlsClientAuthSanUri", "client", "https://client.example.com"),
            ("tlsClientAuthSanIp", "192.0.2.256", "2001:db8::7"),
            ("tlsClientAuthSanEmail", "client", "client@example.com"),
        ] {
            let body = |value: &str| json!({ "clientAppId": app["id"], "tokenEndpointAuthMethod": "tls_client_auth", member: value });
            let problem = world.admin.post(configurations, body(wrong)).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{member}")]);
            let created = world.admin.post(configurations, body(fits)).await.is(201).json();
            assert_eq!(created[member], fits);
            world.admin.delete(&format!("{configurations}/{}", id(&app))).await.expect(204);
        }
    }

    /// An address must be a valid recipient. A stored invalid one may be sent back, is not accepted anew, and gets no mail.
    async fn an_address_is_one_that_mail_can_be_sent_to(world: World) {
        let wrong = ["<a@example.org>", "a@example.org.", ".a@example.org", "a@-b.example", "a@b@c"];
        for address in wrong {
            let body = json!({ "loginName": "ada", "emailAddress": address });
            let problem = world.admin.post(&world.path("/User"), body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/emailAddress"], "{address}");
        }
        let ada = world.admin.post(&world.path("/User"), json!({ "loginName": "ada", "emailAddress": "ada@bücher.example" })).await.is(201).json();
        let one = world.path(&format!("/User/{}", id(&ada)));
        let contact = json!({ "kind": "Email", "value": "a@example.org." });
        let problem = world.admin.post(&format!("{one}/security-contact"), contact).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/value"]);

        world.sql(vec![("UPDATE user_account SET email_address = 'a@example.org.', email_address_key = 'a@example.org.' WHERE login_name = 'ada'", vec![])]).await;
        let mut read = world.admin.get(&one).await.is(200).json();
        assert_eq!(read["emailAddress"], "a@example.org.");
        read["firstName"] = json!("Ada");
        let put = world.admin.put(&one, read).await.is(202).json();
        assert_eq!((&put["emailAddress"], &put["firstName"]), (&json!("a@example.org."), &json!("Ada")));
        let batch = json!([{ "id": put["id"], "loginName": "ada", "emailAddress": "a@example.org.", "lastName": "L", "concurrencyToken": put["concurrencyToken"] }]);
        let put = world.admin.put(&world.path("/User/batch"), batch).await.is(200).json()[0].clone();
        let patch = |address: &str| json!({ "emailAddress": address, "concurrencyToken": put["concurrencyToken"] });
        let problem = world.admin.patch(&one, patch(".a@example.org")).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/emailAddress"]);
        set_mail_server(&world.admin).await;
        for way in ["sendresetemail", "request"] {
            let path = format!("{one}/password/reset/{way}");
            world.admin.send(http::Method::POST, &path, &[], vec![]).await.problem(400, "invalid-request");
        }
        world.admin.patch(&one, patch("a@example.org")).await.expect(202);
    }

    /// The pages and the picture of a user are links for others: their schemes run no script. A stored one may be sent back, and is not
    /// accepted anew. Version 1 has none of these members.
    async fn pages_of_people_run_no_script(world: World) {
        let body = |prefix: &str, member: &str, value: &str| json!({ "loginName": format!("{prefix}{member}"), member: value });
        for (member, spoil) in [
            ("website", "UPDATE user_account SET website = 'javascript:x' WHERE login_name = 'gwebsite'"),
            ("profile", "UPDATE user_account SET profile = 'javascript:x' WHERE login_name = 'gprofile'"),
            ("picture", "UPDATE user_account SET picture = 'javascript:x' WHERE login_name = 'gpicture'"),
        ] {
            for wrong in ["javascript:alert(1)", " JavaScript://x%0aalert(1)", "data:text/html,x"] {
                let problem = world.admin.post(&world.path("/User"), body("w", member, wrong)).await.problem(400, "invalid-request");
                assert_eq!(pointers(&problem), [format!("/{member}")], "{wrong}");
            }
            let batch = json!([body("b", member, "example.com"), body("c", member, "javascript:x")]);
            let problem = world.admin.post(&world.path("/User/batch"), batch).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/1/{member}")]);
            let user = world.admin.post(&world.path("/User"), body("g", member, "example.com")).await.is(201).json();
            let one = world.path(&format!("/User/{}", id(&user)));
            world.sql(vec![(spoil, vec![])]).await;
            let mut read = world.admin.get(&one).await.is(200).json();
            assert_eq!(read[member], "javascript:x");
            read["firstName"] = json!("Ada");
            let put = world.admin.put(&one, read).await.is(202).json();
            assert_eq!((&put[member], &put["firstName"]), (&json!("javascript:x"), &json!("Ada")));
            let other = json!({ member: "javascript:y", "concurrencyToken": put["concurrencyToken"] });
            let problem = world.admin.patch(&one, other).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{member}")]);
        }
    }

    /// A name is one line, and identifying names hold no invisible characters. Stored names stay.
    async fn names_hold_what_can_be_seen(world: World) {
        let (users, groups) = (world.path("/User"), world.path("/Group"));
        for wrong in ["a\u{85}b", "a\u{9b}31mb", "a\u{2028}b", "a\u{2029}b"] {
            let body = json!({ "loginName": wrong, "firstName": wrong });
            let problem = world.admin.post(&users, body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/firstName", "/loginName"], "{wrong:?}");
        }
        for hidden in ["ad\u{200b}a", "ad\u{ad}a", "ad\u{202e}a", "ad\u{fe0f}a"] {
            let problem = world.admin.post(&users, json!({ "loginName": hidden })).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/loginName"], "{hidden:?}");
            let problem = world.admin.post(&groups, json!({ "name": hidden })).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/name"], "{hidden:?}");
        }
        for (number, good) in ["Zoë O’Brien-Łukasz", "山田 太郎", "نور", "👩\u{200d}🚀 Ann", "می\u{200c}خواهم"].into_iter().enumerate() {
            let created = world.admin.post(&users, json!({ "loginName": format!("u{number}"), "firstName": good })).await.is(201).json();
            assert_eq!(created["firstName"], good);
        }
        let (user, group) = (world.user("eve").await, world.group("Sales").await);
        world.sql(vec![
            ("UPDATE user_account SET login_name = 'e\u{200b}ve', login_name_key = 'e\u{200b}ve' WHERE login_name = 'eve'", vec![]),
            ("UPDATE user_group SET name = 'Sa\u{ad}les', name_key = 'sa\u{ad}les' WHERE name = 'Sales'", vec![]),
        ]).await;
        for (path, member, row) in [(&users, "loginName", &user), (&groups, "name", &group)] {
            let one = format!("{path}/{}", id(row));
            let read = world.admin.get(&one).await.is(200).json();
            assert_ne!(read[member], row[member]);
            let put = world.admin.put(&one, read.clone()).await.is(202).json();
            assert_eq!(put[member], read[member]);
            let other = json!({ member: "a\u{200b}b", "concurrencyToken": put["concurrencyToken"] });
            let problem = world.admin.patch(&one, other).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), [format!("/{member}")]);
        }
    }

    /// Each word of each enumeration is found in any case, in every list; an unknown one is refused.
    async fn every_enumeration_is_filtered_by_its_words(world: World) {
        world.user("ada").await;
        let mut filtered = Vec::new();
        for service in services().iter().filter(|service| !service.is_deprecated) {
            for op in service.all().filter(|op| matches!(op.action, Action::List) && op.successor.is_none()) {
                let path = format!("{}{}", service.base, op.path).replace("{userstore}", "default");
                let fields = op.shape.fields.iter().filter(|field| field.access.shown);
                for field in fields.filter(|_| !path.contains('{')) {
                    let Kind::Choice(words) = field.kind else { continue };
                    let filter_by = async |word: &str| {
                        let filter = encode(&format!("{} eq \"{word}\"", field.wire()));
                        world.admin.get(&format!("{path}?count=200&filter={filter}")).await
                    };
                    for word in words {
                        let (small, capital) = (filter_by(&word.to_lowercase()).await, filter_by(&word.to_uppercase()).await);
                        let all = filter_by(word).await.is(200).json();
                        assert_eq!((small.is(200).json(), capital.is(200).json()), (all.clone(), all), "{path} {word}");
                    }
                    filter_by("nonsense").await.problem(400, "invalid-request");
                    filtered.push(format!("{} {}", op.shape.name, field.wire()));
                }
            }
        }
        for known in ["AuditTrail action", "AuditTrail category", "Option dataType", "Option editorType", "IdpInstance idpFactoryType"] {
            assert!(filtered.iter().any(|own| own == known), "{known} is not among {filtered:?}");
        }
        let trail = world.path("/CustomAuditTrail");
        let added = world.admin.get(&format!("{trail}?filter={}", encode("action eq \"ADDED\""))).await.is(200).json();
        assert!(!added.as_array().unwrap().is_empty());
    }

    /// Section 15: durations of lifetimes have bounds; a value beyond them is a configuration error.
    async fn lifetimes_have_bounds(world: World) {
        let name = encode("name eq \"AccessTokenLifetime\"");
        let option = world.admin.get(&format!("/api/management/v2/Option?filter={name}")).await.is(200).json()[0].clone();
        let one = format!("/api/management/v2/Option/{}", id(&option));
        let mut token = option["concurrencyToken"].clone();
        for (value, is_wrong) in [("00:00:59", true), ("00:01:00", false), ("1.00:00:00", false), ("1.00:00:01", true), ("00:30:00", false)] {
            let set = world.admin.patch(&one, json!({ "value": value, "concurrencyToken": token })).await.is(202).json();
            assert_eq!(set["hasConfigurationError"], is_wrong, "{value}");
            token = set["concurrencyToken"].clone();
        }
    }
}
