//! Credentials set by others before a promotion are listed for administrators who assign roles, until they are reset.

use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{PASSWORD, assign_role, default_store, group, person, platform_user, store_admin};
use crate::{
    authenticator::{Authenticator, allow, make_ready},
    id,
    signing::send_mail,
};

const BASE: &str = "/api/management/v2";
const NEW: &str = "six noisy red foxes";

/// The list for a platform user, for the members of a group, or, with an empty query, for everybody.
async fn listed(world: &World, query: &str) -> Vec<Value> {
    let report = world.admin.get(&format!("{BASE}/CredentialSetByOther{query}")).await.is(200).json();
    assert_eq!(report["isComplete"], json!(true));
    report["items"].as_array().unwrap().clone()
}

/// The kinds of credentials that are listed for a user.
async fn kinds(world: &World, person: &Value) -> Vec<String> {
    let items = listed(world, &format!("?platformUserId={}", id(person))).await;
    items.iter().map(|item| item["kind"].as_str().unwrap().to_owned()).collect()
}

async fn id_of_app(world: &World, name: &str) -> Value {
    world.all(&format!("ClientApp?filter=name%20eq%20%22{name}%22")).await[0]["id"].clone()
}

fn one(world: &World, user: &Value, rest: &str) -> String {
    world.path(&format!("/User/{}{rest}", id(user)))
}

async fn set_password(world: &World, client: &Client, user: &Value, password: &str) {
    let body = json!({ "newPassword": password });
    client.post(&one(world, user, "/password/reset"), body).await.expect(200);
}

async fn set_address(world: &World, client: &Client, user: &Value, address: &str) {
    let now = world.admin.get(&one(world, user, "")).await.is(200).json();
    let body = json!({ "emailAddress": address, "concurrencyToken": now["concurrencyToken"] });
    client.put(&one(world, user, "/emailaddress"), body).await.expect(202);
}

/// The user changes the password, with the current one.
async fn change_password(world: &World, name: &str) {
    let path = world
        .path("")
        .replace("/administration", &format!("/PublicAdmin/user/loginname/{name}/password/change"));
    let body = json!({ "oldPassword": PASSWORD, "newPassword": NEW });
    world.anonymous.post(&path, body).await.expect(200);
}

on_both_engines! {
    /// A credential is listed with its setter, only for users with roles, until the user or a holder of the role sets it again.
    async fn credentials_set_before_a_promotion_are_listed_until_reset(world: World) {
        let store_admin = store_admin(&world).await;
        let (ada, bob) = (person(&world, "ada", None).await, person(&world, "bob", None).await);
        for user in [&ada, &bob] {
            set_password(&world, &store_admin, user, PASSWORD).await;
            set_address(&world, &store_admin, user, &format!("eve{}@example.org", id(user))).await;
        }
        let platform = platform_user(&world, &ada).await;
        assert_eq!(listed(&world, "").await, Vec::<Value>::new(), "nobody has a role");
        assign_role(&world, "PlatformUser", &platform, "SystemAdmin", json!({})).await;
        let items = listed(&world, "").await;
        assert_eq!(items, listed(&world, &format!("?platformUserId={}", id(&platform))).await);
        let by = id_of_app(&world, "helper").await;
        let store = default_store(&world).await;
        assert_eq!(items.len(), 2, "{items:?}");
        for (item, kind) in items.iter().zip(["Password", "Address"]) {
            assert_eq!((&item["kind"], &item["role"], &item["setBy"]), (&json!(kind), &json!("SystemAdmin"), &by));
            assert_eq!((&item["platformUserId"], &item["userId"]), (&platform["id"], &ada["id"]));
            assert_eq!((&item["idpInstanceId"], &item["userStore"], &item["credentialId"]), (&store["id"], &json!("default"), &json!(null)));
            assert_eq!(item["setOn"].is_string(), kind == "Password");
        }
        change_password(&world, "ada").await;
        assert_eq!(kinds(&world, &platform).await, ["Address"]);
        set_address(&world, &world.admin, &ada, "ada@example.org").await;
        assert_eq!(kinds(&world, &platform).await, Vec::<String>::new());
        world.admin.get(&format!("{BASE}/CredentialSetByOther?platformUserId=ada")).await.problem(400, "invalid-request");
        let both = format!("{BASE}/CredentialSetByOther?platformUserId={}&platformGroupId={}", id(&platform), id(&platform));
        world.admin.get(&both).await.problem(400, "invalid-request");
    }

    /// Before granting a role, an administrator can list credentials that were set by others without that role.
    async fn credentials_set_by_others_are_listed_before_a_role_is_granted(world: World) {
        let store_admin = store_admin(&world).await;
        let ada = person(&world, "ada", None).await;
        set_password(&world, &store_admin, &ada, PASSWORD).await;
        let inner = group(&world, "inner", None).await;
        let members = world.path(&format!("/Group/{}/users", id(&inner)));
        world.admin.post(&members, json!({ "relatedIds": [ada["id"]] })).await.expect(202);
        world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
        let platform = platform_user(&world, &ada).await;
        let of_group = world.all("ApplicationGroup?filter=name%20eq%20%22inner%22").await[0].clone();
        let queries = [format!("platformUserId={}", id(&platform)), format!("platformGroupId={}", id(&of_group))];
        let store = default_store(&world).await;
        let mut targets = Vec::new();
        for name in ["Customer", "Subscription", "Tenant"] {
            targets.push(world.all(name).await[0].clone());
        }
        let grants = [
            ("SystemAdmin", None, true), ("CustomerAdmin", Some(&targets[0]), true), ("SubscriptionAdmin", Some(&targets[1]), true),
            ("TenantAdmin", Some(&targets[2]), true), ("AuditTrailReader", None, true), ("UserStoreAdmin", Some(&store), false),
            ("ApplicationDataReader", None, false), ("ApplicationDataReader", Some(&targets[2]), false), ("UserAdmin", None, false),
        ];
        for (role, target, is_listed) in grants {
            let at = target.map_or_else(String::new, |target| format!("&applyToId={}", id(target)));
            for query in &queries {
                let items = listed(&world, &format!("?{query}&roleType={role}{at}")).await;
                let shown: Vec<_> = items.iter().map(|item| (&item["userId"], &item["kind"], &item["role"])).collect();
                let expected = [(&ada["id"], &json!("Password"), &json!(role))];
                assert_eq!(shown, if is_listed { expected.to_vec() } else { Vec::new() }, "{role} {at} {query}");
            }
        }
        assert_eq!(listed(&world, "").await, Vec::<Value>::new(), "asking grants nothing");
        for wrong in [
            "roleType=SystemAdmin".to_owned(), format!("{}&roleType=Emperor", queries[0]),
            format!("{}&applyToId={}", queries[0], id(&store)), format!("{}&roleType=TenantAdmin", queries[0]),
            format!("{}&roleType=TenantAdmin&applyToId={}", queries[0], id(&store)),
            format!("{}&roleType=SystemAdmin&applyToId={}", queries[0], id(&store)),
        ] {
            world.admin.get(&format!("{BASE}/CredentialSetByOther?{wrong}")).await.problem(400, "invalid-request");
        }
        let far = world.client("far", &[("UserStoreAdmin", None, Some(world.other_store("elsewhere").await))]).await;
        let hidden = format!("{BASE}/CredentialSetByOther?{}&roleType=UserStoreAdmin&applyToId={}", queries[0], id(&store));
        far.get(&hidden).await.problem(400, "invalid-request");
    }

    /// Names are not credentials, so they are not listed.
    async fn attributes_that_are_not_credentials_are_not_listed(world: World) {
        let store_admin = store_admin(&world).await;
        let ada = person(&world, "ada", None).await;
        let now = world.admin.get(&one(&world, &ada, "")).await.is(200).json();
        let body = json!({ "firstName": "Eve", "concurrencyToken": now["concurrencyToken"] });
        store_admin.patch(&one(&world, &ada, ""), body).await.expect(202);
        let platform = platform_user(&world, &ada).await;
        assign_role(&world, "PlatformUser", &platform, "SystemAdmin", json!({})).await;
        assert_eq!(kinds(&world, &platform).await, Vec::<String>::new());
    }

    /// A setter who holds the role now is not listed, since they could act as the user anyway; a former holder is.
    async fn a_setter_who_holds_the_role_is_not_listed(world: World) {
        let store = default_store(&world).await;
        let target = json!({ "applyToIdpInstanceId": store["id"] });
        let store_admin = store_admin(&world).await;
        let ada = person(&world, "ada", Some(("UserStoreAdmin", target))).await;
        set_password(&world, &store_admin, &ada, PASSWORD).await;
        let platform = platform_user(&world, &ada).await;
        assert_eq!(kinds(&world, &platform).await, Vec::<String>::new());
        let subscription = world.all("Subscription").await[0].clone();
        assign_role(&world, "PlatformUser", &platform, "SubscriptionAdmin", json!({ "applyToSubscriptionId": subscription["id"] })).await;
        assert_eq!(kinds(&world, &platform).await, ["Password"]);
    }

    /// A group's role counts like an assigned one; a removed password is listed again once it is restored.
    async fn users_in_groups_with_roles_are_listed(world: World) {
        let store_admin = store_admin(&world).await;
        let ada = person(&world, "ada", None).await;
        make_ready(&world, &[&ada]).await;
        set_password(&world, &store_admin, &ada, PASSWORD).await;
        let outer = group(&world, "outer", Some(("SystemAdmin", json!({})))).await;
        let inner = world.group("inner").await;
        let related = |one: &Value| json!({ "relatedIds": [one["id"]] });
        world.admin.post(&world.path(&format!("/Group/{}/membergroups", id(&outer))), related(&inner)).await.expect(202);
        assert_eq!(listed(&world, "").await, Vec::<Value>::new());
        world.admin.post(&world.path(&format!("/Group/{}/users", id(&inner))), related(&ada)).await.expect(202);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22outer%22").await[0].clone();
        let items = listed(&world, &format!("?platformGroupId={}", id(&platform))).await;
        assert_eq!(items, listed(&world, "").await);
        assert_eq!((items.len(), &items[0]["userId"], &items[0]["kind"]), (1, &ada["id"], &json!("Password")));
        let ids = json!([ada["id"]]);
        world.admin.post(&world.path("/User/password/remove/batch"), ids.clone()).await.expect(200);
        assert_eq!(listed(&world, "").await, Vec::<Value>::new());
        world.admin.post(&world.path("/User/password/restore/batch"), ids).await.expect(200);
        assert_eq!(listed(&world, "").await, items);
    }

    /// A group with more users than the limit makes the answer incomplete, even if none of them is a platform user yet.
    async fn a_group_with_too_many_users_makes_the_answer_incomplete(world: World) {
        let crowd = group(&world, "crowd", Some(("SystemAdmin", json!({})))).await;
        let users: Vec<Value> = (0..1_001).map(|number| json!({ "loginName": format!("user{number}") })).collect();
        let users = world.admin.post(&world.path("/User/batch"), json!(users)).await.is(200).json();
        let ids: Vec<&Value> = users.as_array().unwrap().iter().map(|user| &user["id"]).collect();
        let members = world.path(&format!("/Group/{}/users", id(&crowd)));
        world.admin.post(&members, json!({ "relatedIds": ids[1..] })).await.expect(202);
        assert_eq!(listed(&world, "").await, Vec::<Value>::new(), "1,000 users are examined");
        world.admin.post(&members, json!({ "relatedIds": ids[..1] })).await.expect(202);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22crowd%22").await[0].clone();
        for query in [String::new(), format!("?platformGroupId={}", id(&platform))] {
            let report = world.admin.get(&format!("{BASE}/CredentialSetByOther{query}")).await.is(200).json();
            assert_eq!(report, json!({ "isComplete": false, "items": [] }), "{query}");
        }
    }

    /// Passkeys and security contacts that others registered are each listed until they are deleted.
    async fn passkeys_and_contacts_are_listed_until_deleted(world: World) {
        allow(&world).await;
        let store_admin = store_admin(&world).await;
        let ada = person(&world, "ada", None).await;
        let passkey = Authenticator::new(1).register_by(&store_admin, &world, &ada).await.is(201).json();
        Authenticator::new(2).register(&world, &ada).await.expect(201);
        send_mail(&world).await;
        let contacts = one(&world, &ada, "/security-contact");
        let contact = store_admin.post(&contacts, json!({ "kind": "Email", "value": "help@example.com" })).await.is(201).json();
        let platform = platform_user(&world, &ada).await;
        assign_role(&world, "PlatformUser", &platform, "SystemAdmin", json!({})).await;
        let items = listed(&world, "").await;
        let shown: Vec<_> = items.iter().map(|item| (&item["kind"], &item["credentialId"])).collect();
        assert_eq!(shown, [(&json!("Passkey"), &passkey["id"]), (&json!("Contact"), &contact["id"])]);
        let path = world.path(&format!("/PasskeyCredential/user/{}/{}", id(&ada), id(&passkey)));
        world.admin.delete(&path).await.expect(204);
        world.admin.delete(&format!("{contacts}/{}", id(&contact))).await.expect(204);
        assert_eq!(listed(&world, "").await, Vec::<Value>::new());
    }

    /// A SCIM token holds the roles of whoever created it.
    async fn a_directory_has_the_roles_of_its_token_s_creator(world: World) {
        let store_admin = store_admin(&world).await;
        let mut users = Vec::new();
        for (client, name) in [(&world.admin, "ada"), (&store_admin, "bob")] {
            let token = client.post(&world.path("/ScimToken"), json!({ "name": name })).await.is(201).json();
            let directory = world.admin.with_token(token["token"].as_str().unwrap());
            let user = directory.post("/api/scim/v2/default/Users", json!({ "userName": name })).await.is(201).json();
            users.push((platform_user(&world, &user).await, token));
        }
        for (person, _) in &users {
            assign_role(&world, "PlatformUser", person, "SystemAdmin", json!({})).await;
        }
        assert_eq!(kinds(&world, &users[0].0).await, Vec::<String>::new());
        let items = listed(&world, "").await;
        assert_eq!((items.len(), &items[0]["kind"], &items[0]["setBy"]), (1, &json!("Address"), &users[1].1["id"]), "{items:?}");
        for (_, token) in &users {
            world.admin.delete(&world.path(&format!("/ScimToken/{}", id(token)))).await.expect(204);
        }
        assert_eq!(listed(&world, "").await, items, "also when the tokens are gone");
    }

    /// An administrator gets the list for users in scope; other callers are refused.
    async fn an_administrator_gets_the_list_of_users_in_scope(world: World) {
        let store_admin = store_admin(&world).await;
        let ada = person(&world, "ada", None).await;
        set_password(&world, &store_admin, &ada, PASSWORD).await;
        let platform = platform_user(&world, &ada).await;
        assign_role(&world, "PlatformUser", &platform, "SystemAdmin", json!({})).await;
        let path = format!("{BASE}/CredentialSetByOther");
        assert_eq!(store_admin.get(&path).await.is(200).json()["items"].as_array().map(Vec::len), Some(1));
        let store = world.other_store("elsewhere").await;
        let other = world.client("other", &[("UserStoreAdmin", None, Some(store))]).await;
        assert_eq!(other.get(&path).await.is(200).json()["items"], json!([]));
        let auditor = world.client("auditor", &[("AuditTrailReader", None, None)]).await;
        auditor.get(&path).await.problem(403, "forbidden");
    }
}
