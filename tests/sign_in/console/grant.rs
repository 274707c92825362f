//! Effective permissions as sentences, and role assignment with a review.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, Browser, Page, administrator, assign, encode, hidden,
    many::{BATCH, confirm},
    person, post, sign_in,
};
use crate::{
    id,
    instance::{create_instance, option},
    scim::directory_of,
};

const NEW: &str = "/console/RoleAssignment/new";

/// The visible text of a page.
fn text(page: &Page) -> String {
    let main = page.html.split("<main").nth(1).unwrap();
    let parts = main.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let text: String = parts.collect::<Vec<_>>().join("");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A person in the group Engineering, which is in the group Everyone; the platform user and the upper platform group.
async fn nested(world: &World) -> (Value, Value) {
    let make = async |name: &str| {
        world.admin.post(&world.path("/Group"), json!({ "name": name })).await.is(201).json()
    };
    let (upper, lower) = (make("Everyone").await, make("Engineering").await);
    let grace = person(world, "grace").await;
    let filter = encode("loginName eq \"grace\"");
    let user =
        world.admin.get(&world.path(&format!("/User?filter={filter}"))).await.is(200).json()[0].clone();
    let related = |one: &Value| json!({ "relatedIds": [one["id"]] });
    world
        .admin
        .post(&world.path(&format!("/Group/{}/membergroups", id(&upper))), related(&lower))
        .await
        .expect(202);
    world.admin.post(&world.path(&format!("/Group/{}/users", id(&lower))), related(&user)).await.expect(202);
    world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
    let filter = encode("name eq \"Everyone\"");
    let groups = world.admin.get(&format!("{BASE}/ApplicationGroup?filter={filter}")).await.is(200).json();
    (grace, groups[0].clone())
}

/// Assigns a role to a platform group.
async fn give(world: &World, group: &Value, role: &str, target: (&str, &Value)) {
    let body = json!({ "principalType": "PlatformGroup", "principalId": group["id"], "roleType": role, target.0: target.1["id"] });
    world.make("RoleAssignment", body).await;
}

async fn first(world: &World, resource: &str) -> Value {
    world.admin.get(&format!("{BASE}/{resource}")).await.is(200).json()[0].clone()
}

on_both_engines! {
    /// A role is shown with its scope, and with the groups that grant it.
    async fn effective_permissions_are_shown_as_sentences(world: World) {
        let mut browser = administrator(&world).await;
        let (grace, everyone) = nested(&world).await;
        let subscription = first(&world, "Subscription").await;
        let path = format!("/console/ApplicationUser/{}", id(&grace));
        let none = browser.open(&path).await;
        assert!(text(&none).contains("This account has no role"), "{}", none.html);
        give(&world, &everyone, "SubscriptionAdmin", ("applyToSubscriptionId", &subscription)).await;
        let page = browser.open(&path).await;
        assert!(page.html.contains(&format!("{path}/rights")), "{}", page.html);
        let page = browser.open(&format!("{path}/rights")).await;
        let name = subscription["name"].as_str().unwrap();
        let shown = text(&page);
        let begin = format!(" of {name}, because Administrator of a subscription, through Engineering in Everyone.");
        assert!(shown.contains("Writes users, groups, client apps and ") && shown.contains(&begin), "{shown}");
        let group = browser.open(&format!("/console/ApplicationGroup/{}/rights", id(&everyone))).await;
        let shown = text(&group);
        assert!(shown.contains("because Administrator of a subscription.") && !shown.contains("through"), "{shown}");
        let app = world.all("ClientApp?filter=name%20eq%20%22root%22").await[0].clone();
        let page = browser.open(&format!("/console/ClientApp/{}/rights", id(&app))).await;
        assert!(text(&page).contains("May do everything in this installation"), "{}", text(&page));
        browser.open("/console/Tenant/01a20844-57b6-7003-81dd-dc602f28d82d/rights").await.answer.expect(404);
    }

    /// The additional permissions of a role are shown before it is assigned; the review assigns nothing.
    async fn a_role_is_reviewed_before_it_is_assigned(world: World) {
        let mut browser = administrator(&world).await;
        let (grace, _) = nested(&world).await;
        let tenant = first(&world, "Tenant").await;
        let count = async || world.all("RoleAssignment").await.as_array().unwrap().len();
        let before = count().await;
        let page = browser.open(&format!("{NEW}?principalId={}", id(&grace))).await;
        assert!(page.html.contains("in=ApplicationUser,ApplicationGroup"), "{}", page.html);
        assert!(text(&page).contains("Roles that you can assign"), "{}", page.html);
        let fields = [
            ("review", "true"), ("principalId", id(&grace)), ("roleType", "TenantAdmin"), ("applyToTenantId", id(&tenant)),
        ];
        let review = post(&world, &mut browser, &page, NEW, &fields).await;
        let shown = text(&review);
        assert!(shown.contains("Administrator of a tenant.") && shown.contains("New for Ada Lovelace"), "{shown}");
        assert_eq!(count().await, before, "nothing is given by looking");
        let names = ["principalType", "principalId", "roleType", "applyToTenantId", "key"];
        let sent: Vec<_> = names.iter().map(|name| (*name, hidden(&review, name))).collect();
        let sent: Vec<_> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let created = post(&world, &mut browser, &review, NEW, &sent).await;
        assert!(created.html.contains("<h1>Administrator of a tenant: Ada Lovelace"), "{}", created.html);
        assert_eq!(count().await, before + 1);
        let again = post(&world, &mut browser, &page, NEW, &fields).await;
        assert!(again.status == 409 && again.html.contains("href=\"#f-roleType\""), "{}", again.html);
        let fields = [("review", "true"), ("principalId", id(&grace)), ("roleType", "ApplicationDataReader"), ("applyToTenantId", id(&tenant))];
        let shown = text(&post(&world, &mut browser, &page, NEW, &fields).await);
        assert!(shown.contains("already has these permissions in another scope"), "{shown}");
    }

    /// The page of an assignment shows credentials that others without this role set before, with the actor, and links to
    /// where each is replaced.
    async fn credentials_set_by_others_are_shown_on_the_page_of_an_assignment(world: World) {
        let mut browser = administrator(&world).await;
        let store = world.all("IdpInstance?filter=name%20eq%20%22default%22").await[0].clone();
        let eve = person(&world, "eve").await;
        assign(&world, &eve, "UserStoreAdmin", json!({ "applyToIdpInstanceId": store["id"] })).await;
        let grace = person(&world, "grace").await;
        let user = world.admin.get(&world.path(&format!("/User?filter={}", encode("loginName eq \"grace\"")))).await.is(200).json()[0].clone();
        let helper = world.client("the help desk", &[("UserStoreAdmin", None, Some(id(&store).parse().unwrap()))]).await;
        let reset = world.path(&format!("/User/{}/password/reset", id(&user)));
        helper.post(&reset, json!({ "newPassword": "six noisy red foxes" })).await.expect(200);
        let label = "users with a role whose credentials were set by others";
        let number = |page: &Page| page.html.split(label).next().unwrap().rsplit("<b>").next().unwrap().split('<').next().unwrap().to_owned();
        let page = browser.open("/console").await;
        assert_eq!(number(&page), "0", "{}", page.html);
        let page = browser.open(&format!("{NEW}?principalId={}", id(&grace))).await;
        let key = hidden(&page, "key");
        let fields = [("principalType", "PlatformUser"), ("principalId", id(&grace)), ("roleType", "SystemAdmin"), ("key", &key)];
        let created = post(&world, &mut browser, &page, NEW, &fields).await;
        let shown = text(&created);
        assert!(shown.contains("Set by others without the role") && shown.contains("set by the help desk"), "{shown}");
        let user_link = format!("href=\"/console/store/default/User/{}\"", id(&user));
        assert!(created.html.contains(&user_link), "{}", created.html);
        let page = browser.open("/console").await;
        assert_eq!(number(&page), "1", "{}", page.html);
        assert!(page.html.contains("href=\"/console/set-by-others\""), "{}", page.html);
        let page = browser.open("/console/set-by-others").await;
        let shown = text(&page);
        assert!(shown.contains("Ada Lovelace") && shown.contains("Password") && shown.contains("the help desk"), "{shown}");
        assert!(page.html.contains(&user_link), "{}", page.html);
        let page = browser.open(&format!("/console/store/default/User/{}", id(&user))).await;
        assert!(text(&page).contains("Set by others without the role"), "{}", page.html);
        world.admin.post(&reset, json!({ "newPassword": "nine calm blue whales" })).await.expect(200);
        let page = browser.open(&format!("/console/ApplicationUser/{}", id(&grace))).await;
        assert!(!text(&page).contains("Set by others"), "{}", page.html);
        assert_eq!(number(&browser.open("/console").await), "0");
    }

    /// A role is refused while a lower administrator's settings of the person's provider are not confirmed, on the provider's page.
    async fn the_provider_of_a_person_is_confirmed_before_a_role_is_assigned(world: World) {
        let mut browser = administrator(&world).await;
        let helper = world.client("the help desk", &[("SubscriptionAdmin", None, None)]).await;
        let instance = create_instance(&world, "Partner", "OpenIdConnect").await;
        let (directory, base) = directory_of(&world, &instance).await;
        let user = json!({ "userName": "grace", "externalId": "s-grace", "name": { "givenName": "Grace" } });
        let grace = directory.post(&format!("{base}/Users"), user).await.is(201).json();
        let row = option(&world, &instance, "Authority").await;
        let body = json!({ "value": "https://login.example", "concurrencyToken": row["concurrencyToken"] });
        helper.patch(&format!("{BASE}/Option/{}", id(&row)), body).await.expect(202);
        let row = option(&world, &instance, "Authority").await;
        let again = json!({ "value": "https://login.example/2", "concurrencyToken": row["concurrencyToken"] });
        let give = async |browser: &mut Browser| {
            let page = browser.open(&format!("{NEW}?principalId={}", id(&grace))).await;
            let key = hidden(&page, "key");
            let fields = [("principalType", "PlatformUser"), ("principalId", id(&grace)), ("roleType", "SystemAdmin"), ("key", &key)];
            post(&world, browser, &page, NEW, &fields).await
        };
        let refused = give(&mut browser).await;
        assert!(refused.status == 409 && text(&refused).contains("Review its settings"), "{}: {}", refused.status, refused.html);
        let item = format!("/console/IdpInstance/{}", id(&instance));
        let page = browser.open(&format!("/console/set-by-others?platformUserId={}&roleType=SystemAdmin", id(&grace))).await;
        assert!(text(&page).contains("Settings of the identity provider") && page.html.contains(&format!("href=\"{item}\"")), "{}", page.html);
        let confirm = format!("{item}/ConfirmIdpInstanceSettings");
        assert!(browser.open(&item).await.html.contains(&confirm));
        let page = browser.open(&confirm).await;
        let sent = page.field("reviewedOn");
        let fields = [("key", page.field("key")), ("reviewedOn", sent.clone())];
        let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
        // what is changed while the page is shown is not confirmed
        helper.patch(&format!("{BASE}/Option/{}", id(&row)), again).await.expect(202);
        let confirmed = post(&world, &mut browser, &page, &confirm, &fields).await;
        assert_eq!(confirmed.status, 200, "{}", confirmed.html);
        assert_eq!(give(&mut browser).await.status, 409);
        let page = browser.open(&confirm).await;
        assert!(page.field("reviewedOn") > sent, "{sent}");
        let fields = [("key", page.field("key")), ("reviewedOn", page.field("reviewedOn"))];
        let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
        let confirmed = post(&world, &mut browser, &page, &confirm, &fields).await;
        assert_eq!(confirmed.status, 200, "{}", confirmed.html);
        assert_eq!(give(&mut browser).await.status, 200);
        let store = world.all("IdpInstance?filter=name%20eq%20%22default%22").await[0].clone();
        let page = browser.open(&format!("/console/IdpInstance/{}", id(&store))).await;
        assert!(page.status == 200 && !page.html.contains("ConfirmIdpInstanceSettings"), "{}", page.html);
    }

    /// The review of an assignment shows credentials that others without this role set, and links to where each is
    /// replaced.
    async fn credentials_set_by_others_are_shown_before_a_role_is_assigned(world: World) {
        let mut browser = administrator(&world).await;
        let store = world.all("IdpInstance?filter=name%20eq%20%22default%22").await[0].clone();
        let (grace, everyone) = nested(&world).await;
        let user = world.admin.get(&world.path(&format!("/User?filter={}", encode("loginName eq \"grace\"")))).await.is(200).json()[0].clone();
        let helper = world.client("the help desk", &[("UserStoreAdmin", None, Some(id(&store).parse().unwrap()))]).await;
        let reset = world.path(&format!("/User/{}/password/reset", id(&user)));
        helper.post(&reset, json!({ "newPassword": "six noisy red foxes" })).await.expect(200);
        let page = browser.open(&format!("{NEW}?principalId={}", id(&grace))).await;
        let warning = "Before you assign the role, set a new password";
        let user_link = format!("href=\"/console/store/default/User/{}\"", id(&user));
        for (kind, principal) in [("platformUserId", &grace), ("platformGroupId", &everyone)] {
            let fields = [("review", "true"), ("principalId", id(principal)), ("roleType", "SystemAdmin")];
            let review = post(&world, &mut browser, &page, NEW, &fields).await;
            let shown = text(&review);
            assert!(shown.contains(warning) && shown.contains("set by the help desk"), "{shown}");
            assert!(review.html.contains(&user_link), "{}", review.html);
            let all = format!("/console/set-by-others?{kind}={}&roleType=SystemAdmin", id(principal));
            assert!(review.html.contains(&all.replace('&', "&amp;")), "{}", review.html);
            let shown = text(&browser.open(&all).await);
            assert!(shown.contains("Ada Lovelace") && shown.contains("the help desk"), "{shown}");
        }
        let fields = [("review", "true"), ("principalId", id(&grace)), ("roleType", "UserStoreAdmin"), ("applyToIdpInstanceId", id(&store))];
        let shown = text(&post(&world, &mut browser, &page, NEW, &fields).await);
        assert!(shown.contains("It is not assigned yet") && !shown.contains(warning), "the help desk holds this role: {shown}");
        let body = json!({ "principalType": "PlatformGroup", "principalId": everyone["id"], "roleType": "AuditTrailReader" });
        world.make("RoleAssignment", body).await;
        let joined = &user["memberOfGroups"][0];
        for group in [format!("ApplicationGroup/{}", id(&everyone)), format!("store/default/Group/{}", id(joined))] {
            let shown = text(&browser.open(&format!("/console/{group}")).await);
            assert!(shown.contains("Set by others without the role") && shown.contains("set by the help desk"), "{shown}");
        }
        // a membership that gives the role shows it at once, from either side
        let (group, member) = (format!("/console/store/default/Group/{}", id(joined)), format!("/console/store/default/User/{}", id(&user)));
        for (page, other) in [(format!("{group}/relation/memberUsers"), id(&user)), (format!("{member}/relation/memberOfGroups"), id(joined))] {
            let opened = browser.open(&page).await;
            for (act, field) in [("remove", "selected"), ("add", "id")] {
                let changed = post(&world, &mut browser, &opened, &format!("{page}/{act}"), &[(field, other)]).await;
                let shown = text(&changed);
                assert_eq!(shown.contains("set by the help desk"), act == "add", "{page} {act}: {shown}");
            }
        }
        // and so does the page that follows when users were added to the group from their list
        let members = browser.open(&format!("{group}/relation/memberUsers")).await;
        post(&world, &mut browser, &members, &format!("{group}/relation/memberUsers/remove"), &[("selected", id(&user))]).await;
        let fields = [("act", "add"), ("group", id(joined)), ("selected", id(&user))];
        let confirmation = post(&world, &mut browser, &page, BATCH, &fields).await;
        let shown = text(&confirm(&world, &mut browser, &confirmation, BATCH).await);
        assert!(shown.contains("set by the help desk"), "{shown}");
        world.admin.post(&reset, json!({ "newPassword": "nine calm blue whales" })).await.expect(200);
        let fields = [("review", "true"), ("principalId", id(&grace)), ("roleType", "SystemAdmin")];
        let shown = text(&post(&world, &mut browser, &page, NEW, &fields).await);
        assert!(shown.contains("It is not assigned yet") && !shown.contains(warning), "{shown}");
    }

    /// Only roles that the user may assign are offered; others are refused at the field.
    async fn only_held_roles_can_be_assigned(world: World) {
        let (grace, _) = nested(&world).await;
        let tenant = first(&world, "Tenant").await;
        let one = person(&world, "tenant").await;
        assign(&world, &one, "TenantAdmin", json!({ "applyToTenantId": tenant["id"] })).await;
        let mut browser = Browser::new(&world);
        sign_in(&mut browser, "/console", "tenant").await;
        let page = browser.open(NEW).await;
        assert!(page.html.contains("value=\"TenantAdmin\"") && !page.html.contains("value=\"SystemAdmin\""), "{}", page.html);
        let shown = text(&page);
        let (_, limits) = shown.split_once("Roles that you can assign").unwrap();
        assert!(limits.contains("Administrator of a tenant") && limits.contains(tenant["name"].as_str().unwrap()), "{shown}");
        let fields = [("review", "true"), ("principalId", id(&grace)), ("roleType", "SystemAdmin")];
        let refused = post(&world, &mut browser, &page, NEW, &fields).await;
        assert!([400, 403].contains(&refused.status) && refused.html.contains("id=\"f-roleType\""), "{}", refused.html);
    }

    /// A row that refers to others shows their names.
    async fn references_are_shown_by_name(world: World) {
        let mut browser = administrator(&world).await;
        let (_, everyone) = nested(&world).await;
        give(&world, &everyone, "TenantAdmin", ("applyToTenantId", &first(&world, "Tenant").await)).await;
        let list = browser.open("/console/RoleAssignment").await;
        let href = list.html.split("href=\"/console/RoleAssignment/").skip(1).map(|rest| rest.split('"').next().unwrap());
        let mut titles = Vec::new();
        for key in href.filter(|key| key.len() == 36).map(str::to_owned).collect::<Vec<_>>() {
            titles.push(text(&browser.open(&format!("/console/RoleAssignment/{key}")).await));
        }
        let of_group = titles.iter().find(|title| title.contains("Administrator of a tenant: Everyone")).unwrap();
        assert!(of_group.contains("because Administrator of a tenant."), "{of_group}");
        assert!(!of_group.contains(id(&everyone)), "{of_group}");
    }
}
