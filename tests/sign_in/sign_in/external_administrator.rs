//! People of an external identity provider administer with their roles, by tokens and in the console, and lose these rights
//! at once.

use std::sync::Arc;

use chancery_resource::CONSOLE;
use chancery_testkit::{Client, World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, SignInApp, administrator,
    browser::{Browser, Page},
    change, claims, encode, external, first, parameter, relate, second_factor,
};
use crate::{
    escalation::reviewed_now,
    id,
    instance::option,
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
    roles::assign_role,
    scim::directory_of,
};

const MANAGEMENT: &str = "PlatformManagementService";

/// An app for the platform, and a provider of its people.
async fn set_up(world: &World) -> (SignInApp, Arc<StubProvider>, Value) {
    let (home, provider) = (administrator::console(world).await, StubProvider::start().await);
    let instance = external::connect(world, &home, "Partner", &provider).await;
    now_at(&provider);
    (home, provider, instance)
}

/// The person signs in at the provider now: the console and consent pages require a fresh sign-in.
fn now_at(provider: &StubProvider) {
    let claims = json!({ "auth_time": chancery_web::now().0 / 1000, "given_name": "Ada" });
    provider.behave(Behaviour { claims, ..Behaviour::default() });
}

/// The tokens of a sign-in for the management service, with the person's consent.
async fn tokens(world: &World, home: &SignInApp, provider: &StubProvider) -> Value {
    let mut browser = Browser::new(world);
    let asked = [("resource", MANAGEMENT), ("scope", "openid offline_access")];
    let page = browser.open(&home.request(&asked)).await;
    let mut page = external::sign_in_with(&mut browser, &page, "Partner", provider).await;
    if page.asks_for_consent() {
        page = browser.submit(&page, &[("decision", "allow"), ("scope", "offline_access")]).await;
    }
    let code = parameter(&browser.continue_to_app(&page).await, "code").unwrap();
    home.redeem(world, &code, &[]).await.is(200).json()
}

fn bearer(world: &World, tokens: &Value) -> Client {
    world.anonymous.with_token(tokens["access_token"].as_str().unwrap())
}

async fn unassign(world: &World, role: &Value) {
    world.admin.delete(&format!("{BASE}/RoleAssignment/{}", id(role))).await.expect(204);
}

/// Confirms the settings of the instance as they are now.
async fn confirm(world: &World, instance: &Value) {
    let path = format!("{BASE}/IdpInstance/{}/settings/confirm", id(instance));
    world.admin.post(&path, reviewed_now()).await.expect(204);
}

/// Offers the provider in the console.
async fn link_console(world: &World, home: &SignInApp, instance: &Value) {
    let console = world.admin.get(&format!("{BASE}/ClientApp/{CONSOLE}")).await.is(200).json();
    let tenant = console["tenants"][0]["id"].as_str().unwrap().to_owned();
    let apps = vec![id(&console), id(&home.app)];
    for (relation, related) in [("tenants", vec![tenant.as_str()]), ("clientapps", apps)] {
        relate(world, &format!("/IdpInstance/{}/{relation}", id(instance)), &related).await;
    }
}

/// Signs in to the console at the provider.
async fn enter(world: &World, provider: &StubProvider) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open("/console").await;
    let page = external::sign_in_with(&mut browser, &page, "Partner", provider).await;
    let page = browser.open(&page.redirect_target()).await;
    (browser, page)
}

/// Whether the console shows the sign-in page instead of its own.
fn is_out(page: &Page) -> bool {
    page.html.contains("Continue with Partner")
}

on_both_engines! {
    [allow_loopback]
    async fn external_people_have_their_roles_at_the_services(world: World) {
        let (home, provider, _) = set_up(&world).await;
        let issued = tokens(&world, &home, &provider).await;
        let ada = bearer(&world, &issued);
        let tenants = format!("{BASE}/Tenant");
        ada.get(&tenants).await.expect(403);
        let person = json!({ "id": claims(&issued["access_token"])["sub"] });
        let of_tenant = json!({ "applyToTenantId": home.tenant });
        let role = assign_role(&world, "PlatformUser", &person, "TenantAdmin", of_tenant).await;
        let seen = ada.get(&tenants).await.is(200).json();
        assert_eq!(seen.as_array().unwrap().len(), 1);
        ada.get(&format!("{BASE}/Customer")).await.expect(403);
        let own = format!("{BASE}/EffectivePermissions/platformuser/{}", id(&person));
        assert_eq!(ada.get(&own).await.is(200).json()["assignments"][0]["roleType"], json!("TenantAdmin"));
        let filter = encode(&format!("applyToTenantId eq \"{}\" and name eq \"TermsUrl\"", home.tenant));
        let terms = first(&world, &format!("/Option?filter={filter}")).await;
        let body = json!({ "value": "https://example.com/terms", "concurrencyToken": terms["concurrencyToken"] });
        ada.patch(&format!("{BASE}/Option/{}", id(&terms)), body).await.expect(202);
        let entry = first(&world, "/CustomAuditTrail?sortOrder=descending&count=1").await;
        assert_eq!((&entry["area"], &entry["user"]), (&json!("Option"), &person["id"]));
        let refreshed = home.refresh_at(&world.anonymous, issued["refresh_token"].as_str().unwrap()).await.is(200).json();
        bearer(&world, &refreshed).get(&tenants).await.expect(200);
        // the person's token for another resource has no rights
        let plain = external::tokens(&world, &home, &provider, &[]).await;
        bearer(&world, &plain).get(&tenants).await.expect(401);
        unassign(&world, &role).await;
        ada.get(&tenants).await.expect(403);
    }

    /// A token of the platform loses its rights with the provider, its links, or the person, without a new epoch where it is the person.
    async fn rights_of_external_people_end_with_the_provider_and_its_links(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let issued = tokens(&world, &home, &provider).await;
        let person = json!({ "id": claims(&issued["access_token"])["sub"] });
        assign_role(&world, "PlatformUser", &person, "SystemAdmin", json!({})).await;
        let (ada, tenants) = (bearer(&world, &issued), format!("{BASE}/Tenant"));
        let path = format!("/IdpInstance/{}", id(&instance));
        ada.get(&tenants).await.expect(200);
        for (relation, related) in [("tenants", home.tenant.as_str()), ("clientapps", id(&home.app))] {
            relate(&world, &format!("{path}/{relation}"), &[]).await;
            ada.get(&tenants).await.expect(401);
            relate(&world, &format!("{path}/{relation}"), &[related]).await;
            ada.get(&tenants).await.expect(200);
        }
        change(&world, &path, json!({ "isActive": false })).await;
        ada.get(&tenants).await.expect(401);
        change(&world, &path, json!({ "isActive": true })).await;
        ada.get(&tenants).await.expect(200);
        let set = async |text: &'static str| world.sql(vec![(text, vec![])]).await;
        for (off, on) in [
            ("UPDATE application_user SET is_active = FALSE", "UPDATE application_user SET is_active = TRUE"),
            ("UPDATE application_identity SET lifecycle_status = 'Replaced'", "UPDATE application_identity SET lifecycle_status = 'Active'"),
        ] {
            set(off).await;
            ada.get(&tenants).await.expect(401);
            set(on).await;
            ada.get(&tenants).await.expect(200);
        }
        world.admin.post(&format!("{BASE}/ApplicationUser/{}/signout", id(&person)), json!(null)).await.expect(204);
        ada.get(&tenants).await.expect(401);
    }

    async fn roles_of_provisioned_groups_apply_to_their_members(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let (directory, base) = directory_of(&world, &instance).await;
        let body = json!({ "userName": "ada@corp.example", "externalId": "ada" });
        let person = directory.post(&format!("{base}/Users"), body).await.is(201).json();
        let body = json!({ "displayName": "Operators", "members": [{ "value": person["id"] }] });
        let group = directory.post(&format!("{base}/Groups"), body).await.is(201).json();
        let issued = tokens(&world, &home, &provider).await;
        let (ada, tenants) = (bearer(&world, &issued), format!("{BASE}/Tenant"));
        assert_eq!(claims(&issued["access_token"])["sub"], person["id"]);
        ada.get(&tenants).await.expect(403);
        let role = assign_role(&world, "PlatformGroup", &group, "TenantAdmin", json!({ "applyToTenantId": home.tenant })).await;
        ada.get(&tenants).await.expect(200);
        let own = format!("{BASE}/EffectivePermissions/platformuser/{}", id(&person));
        let permissions = ada.get(&own).await.is(200).json();
        let assignment = &permissions["assignments"][0];
        assert_eq!((&assignment["source"], &assignment["sourceId"]), (&json!("Group"), &group["id"]));
        // a directory cannot change who has the role
        let without = json!({ "displayName": "Operators", "members": [] });
        directory.put(&format!("{base}/Groups/{}", id(&group)), without.clone()).await.expect(403);
        // its row alone is removed, without a new epoch
        world.sql(vec![("DELETE FROM application_group_member", vec![])]).await;
        ada.get(&tenants).await.expect(403);
        unassign(&world, &role).await;
        directory.put(&format!("{base}/Groups/{}", id(&group)), without).await.expect(200);
    }

    /// A person with a user of the store, too, has the roles of the store's groups, while that user may sign in.
    async fn external_people_have_the_roles_of_their_user_in_a_store(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let issued = tokens(&world, &home, &provider).await;
        let (ada, tenants) = (bearer(&world, &issued), format!("{BASE}/Tenant"));
        let sql = "UPDATE application_identity SET application_user_rid = (SELECT i.application_user_rid FROM application_identity i \
            WHERE i.idp_instance_id = ?1) WHERE is_user_store_identity AND subject = ?2";
        world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
        let external = chancery_record::Value::Id(id(&instance).parse().unwrap());
        world.sql(vec![(sql, vec![external, id(&home.user).into()])]).await;
        let group = world.group("Operations").await;
        let members = world.path(&format!("/User/{}/groups", id(&home.user)));
        world.admin.put(&members, json!({ "relatedIds": [group["id"]] })).await.expect(202);
        world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
        ada.get(&tenants).await.expect(403);
        let platform = first(&world, "/ApplicationGroup?filter=name%20eq%20%22Operations%22").await;
        assign_role(&world, "PlatformGroup", &platform, "SystemAdmin", json!({})).await;
        ada.get(&tenants).await.expect(200);
        for (off, on) in [
            ("UPDATE user_account SET is_user_locked = TRUE", "UPDATE user_account SET is_user_locked = FALSE"),
            ("UPDATE user_account SET is_user_active = FALSE", "UPDATE user_account SET is_user_active = TRUE"),
            (
                "UPDATE idp_instance SET is_active = FALSE WHERE store_name_key IS NOT NULL",
                "UPDATE idp_instance SET is_active = TRUE WHERE store_name_key IS NOT NULL",
            ),
        ] {
            world.sql(vec![(off, vec![])]).await;
            ada.get(&tenants).await.expect(403);
            world.sql(vec![(on, vec![])]).await;
            ada.get(&tenants).await.expect(200);
        }
        world.admin.put(&members, json!({ "relatedIds": [] })).await.expect(202);
        ada.get(&tenants).await.expect(403);
    }

    /// The actor who configured the provider could sign in as its users until the review. Sessions, tokens and consents from before
    /// it are refused at the platform, and accepted at other client apps.
    async fn sign_ins_from_before_a_review_do_not_count_at_the_platform(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let issued = tokens(&world, &home, &provider).await;
        let person = json!({ "id": claims(&issued["access_token"])["sub"] });
        assign_role(&world, "PlatformUser", &person, "SystemAdmin", json!({})).await;
        let (ada, tenants) = (bearer(&world, &issued), format!("{BASE}/Tenant"));
        ada.get(&tenants).await.expect(200);
        let for_platform = [("resource", MANAGEMENT), ("scope", "openid offline_access")];
        let (mut browser, answer) = external::sign_in(&world, &home, &provider, &[]).await;
        let plain = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let silent = async |browser: &mut Browser, more: &[(&str, &str)]| {
            let request = [more, &[("prompt", "none")]].concat();
            browser.open(&home.request(&request)).await.left.unwrap()
        };
        let code = parameter(&silent(&mut browser, &for_platform).await, "code").unwrap();
        confirm(&world, &instance).await;
        ada.get(&tenants).await.expect(401);
        let refreshed = home.refresh_at(&world.anonymous, issued["refresh_token"].as_str().unwrap()).await.is(200).json();
        bearer(&world, &refreshed).get(&tenants).await.expect(401);
        let redeemed = home.redeem(&world, &code, &[]).await.is(200).json();
        bearer(&world, &redeemed).get(&tenants).await.expect(401);
        // nor does the session of the browser, but elsewhere it does
        assert_eq!(parameter(&silent(&mut browser, &for_platform).await, "error").as_deref(), Some("login_required"));
        assert!(parameter(&silent(&mut browser, &[]).await, "code").is_some());
        bearer(&world, &plain).get("/connect/userinfo").await.expect(200);
        // after a new sign-in the person consents again
        now_at(&provider);
        let page = browser.open(&home.request(&for_platform)).await;
        let page = external::sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.asks_for_consent(), "{}", page.html);
        let page = browser.submit(&page, &[("decision", "allow"), ("scope", "offline_access")]).await;
        let code = parameter(&browser.continue_to_app(&page).await, "code").unwrap();
        let issued = home.redeem(&world, &code, &[]).await.is(200).json();
        bearer(&world, &issued).get(&tenants).await.expect(200);
        let refreshed = home.refresh_at(&world.anonymous, issued["refresh_token"].as_str().unwrap()).await.is(200).json();
        bearer(&world, &refreshed).get(&tenants).await.expect(200);
        assert!(parameter(&silent(&mut browser, &for_platform).await, "code").is_some());
    }

    async fn console_sessions_from_before_a_review_end(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        link_console(&world, &home, &instance).await;
        let (mut browser, _) = enter(&world, &provider).await;
        let person = external::people(&world, &instance).await.remove(0);
        assign_role(&world, "PlatformUser", &person, "SystemAdmin", json!({})).await;
        browser.open("/console/Tenant").await.answer.expect(200);
        assert_eq!(world.admin.get(&format!("{BASE}/CredentialSetByOther")).await.is(200).json()["items"], json!([]));
        confirm(&world, &instance).await;
        now_at(&provider);
        let page = browser.open("/console/Tenant").await;
        assert!(is_out(&page), "{}", page.html);
        let page = external::sign_in_with(&mut browser, &page, "Partner", &provider).await;
        browser.open(&page.redirect_target()).await.answer.expect(200);
        browser.open("/console/Tenant").await.answer.expect(200);
    }

    async fn external_people_administer_in_the_console(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        link_console(&world, &home, &instance).await;
        let (_, page) = enter(&world, &provider).await;
        assert!(page.status == 403 && page.html.contains("no role"), "{}: {}", page.status, page.html);
        let person = external::people(&world, &instance).await.remove(0);
        let role = assign_role(&world, "PlatformUser", &person, "TenantAdmin", json!({ "applyToTenantId": home.tenant })).await;
        let (mut browser, page) = enter(&world, &provider).await;
        assert!(page.status == 200 && page.html.contains("Hello, Ada"), "{}: {}", page.status, page.html);
        browser.open("/console/Tenant").await.answer.expect(200);
        assert_eq!(browser.open("/console/Customer").await.status, 403);
        let records = world.all("SignInRecord?filter=outcome%20eq%20%22SignedIn%22").await;
        assert!(records.as_array().unwrap().iter().all(|one| one["platformUserId"] == person["id"]), "{records}");
        // an action that requires a fresh proof leads to the provider, too
        world.sql(vec![("UPDATE console_session SET proven_on = proven_on - 660000", vec![])]).await;
        now_at(&provider);
        let page = browser.open("/console/proof").await;
        let page = if is_out(&page) { external::sign_in_with(&mut browser, &page, "Partner", &provider).await } else { page };
        let page = browser.open(&page.redirect_target()).await;
        assert!(page.html.contains("Identity confirmed"), "{}", page.html);
        // the rights end with the role, and the session with the provider and its link
        unassign(&world, &role).await;
        let page = browser.open("/console/Tenant").await;
        assert!(page.status == 403 && page.html.contains("no role"), "{}", page.html);
        assign_role(&world, "PlatformUser", &person, "SystemAdmin", json!({})).await;
        browser.open("/console/Tenant").await.answer.expect(200);
        let (apps, path) = (format!("/IdpInstance/{}/clientapps", id(&instance)), format!("/IdpInstance/{}", id(&instance)));
        let console = CONSOLE.to_string();
        relate(&world, &apps, &[id(&home.app)]).await;
        assert!(browser.open("/console/Tenant").await.html.contains("name=\"password\""));
        relate(&world, &apps, &[console.as_str()]).await;
        change(&world, &path, json!({ "isActive": false })).await;
        assert!(browser.open("/console/Tenant").await.html.contains("name=\"password\""));
        change(&world, &path, json!({ "isActive": true })).await;
        let (mut browser, page) = enter(&world, &provider).await;
        assert_eq!(page.status, 200, "{}", page.html);
        let before = browser.cookies.clone();
        let csrf = page.field("csrf");
        let out = browser.post("/console/signout", &[("csrf", csrf.as_str())], &[("origin", &world.base)]).await;
        assert!(out.status == 200 && out.html.contains("signed out"), "{}: {}", out.status, out.html);
        for cookies in [browser.cookies.clone(), before] {
            browser.cookies = cookies;
            let page = browser.open("/console").await;
            assert!(is_out(&page), "{}", page.html);
        }
    }

    /// The console shows the nearest name of a person of whom the provider sends none.
    async fn the_console_names_external_people_without_a_name(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        link_console(&world, &home, &instance).await;
        let nameless = json!({ "auth_time": chancery_web::now().0 / 1000, "email": null });
        provider.behave(Behaviour { claims: nameless, user_info: json!({ "email": null }), ..Behaviour::default() });
        enter(&world, &provider).await;
        let person = external::people(&world, &instance).await.remove(0);
        assign_role(&world, "PlatformUser", &person, "SystemAdmin", json!({})).await;
        let (_, page) = enter(&world, &provider).await;
        assert!(page.status == 200 && page.html.contains("Hello, ada"), "{}: {}", page.status, page.html);
    }

    /// A second factor that administrators need is required of external people, too.
    async fn a_second_factor_of_the_console_is_required_of_external_people(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        link_console(&world, &home, &instance).await;
        let factor = second_factor::make_factor(&world, &home, "totp").await;
        relate(&world, &format!("/ClientApp/{CONSOLE}/mfainstances"), &[id(&factor)]).await;
        let mut browser = Browser::new(&world);
        let page = browser.open("/console").await;
        let page = external::sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("otpauth://totp/"), "{}", page.html);
        assert!(browser.open("/console/Tenant").await.html.contains("Continue with Partner"));
    }

    /// A lower administrator cannot replace a provider by a server of the attacker while a person with a higher role signs in by it.
    async fn a_provider_of_an_administrator_cannot_be_replaced(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let issued = tokens(&world, &home, &provider).await;
        let person = json!({ "id": claims(&issued["access_token"])["sub"] });
        let role = assign_role(&world, "PlatformUser", &person, "SystemAdmin", json!({})).await;
        let low = world.client("low", &[("SubscriptionAdmin", None, None)]).await;
        let attacker = StubProvider::start().await;
        let point = async || {
            let row = option(&world, &instance, "Authority").await;
            let body = json!({ "value": attacker.issuer, "concurrencyToken": row["concurrencyToken"] });
            low.patch(&format!("{BASE}/Option/{}", id(&row)), body).await
        };
        let problem = point().await.problem(403, "forbidden");
        assert_eq!((&problem["role"], &problem["id"]), (&json!("SystemAdmin"), &instance["id"]));
        // the same subject at a provider of the attacker's own is another person
        let other = external::connect(&world, &home, "Other", &attacker).await;
        attacker.behave(Behaviour { claims: json!({ "auth_time": chancery_web::now().0 / 1000 }), ..Behaviour::default() });
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("resource", MANAGEMENT)])).await;
        let page = external::sign_in_with(&mut browser, &page, "Other", &attacker).await;
        let page = browser.submit(&page, &[("decision", "allow")]).await;
        let code = parameter(&browser.continue_to_app(&page).await, "code").unwrap();
        let theirs = home.redeem(&world, &code, &[]).await.is(200).json();
        bearer(&world, &theirs).get(&format!("{BASE}/Tenant")).await.expect(403);
        assert_eq!(external::people(&world, &other).await.len(), 1);
        bearer(&world, &issued).get(&format!("{BASE}/Tenant")).await.expect(200);
        unassign(&world, &role).await;
        point().await.expect(202);
    }
}
