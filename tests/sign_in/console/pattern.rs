//! The standard pages of every resource: lists, forms, review, merge, deletion.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Browser, PASSWORD, Page, administrator, encode, hidden, post, unescaped};
use crate::{
    id,
    instance::{create_instance, set_option},
};

/// The lists of the API: every path of a list without further parameters.
pub fn lists() -> Vec<String> {
    let mut paths = Vec::new();
    for service in [&chancery_userstore::SERVICE, &chancery_management::SERVICE] {
        for op in service.all() {
            let path = op.path.strip_prefix("/administration").unwrap_or(op.path);
            let is_list = op.method == chancery_resource::Method::Get && op.reply.is_list();
            if is_list && path.matches('/').count() == 1 && !path.contains('{') {
                let store = if service.base.contains("{userstore}") { "/store/default" } else { "" };
                let name = if path.contains('-') { op.shape.name } else { path.trim_start_matches('/') };
                paths.push(format!("/console{store}/{name}"));
            }
        }
    }
    paths
}

async fn tenant(world: &World) -> Value {
    world.admin.get(&format!("{BASE}/Tenant")).await.is(200).json()[0].clone()
}

/// Opens the form of a row and submits it with these fields changed.
async fn save(
    world: &World,
    browser: &mut Browser,
    path: &str,
    page: &Page,
    fields: &[(&str, &str)],
) -> Page {
    let (base, token) = (hidden(page, "base"), hidden(page, "concurrencyToken"));
    let all: Vec<_> = [("base", base.as_str()), ("concurrencyToken", token.as_str())]
        .into_iter()
        .chain(fields.iter().copied())
        .collect();
    post(world, browser, page, path, &all).await
}

/// The members of a creation that its form contains: the server generates ids, the scope is part of the URL, and
/// relations have their own page.
fn accepted_fields(document: &Value, name: &str) -> Option<Vec<String>> {
    let end = format!("/{name}");
    let is_its_list = |path: &str| path.ends_with(&end) && path.matches('{').count() < 2;
    let (_, item) = document["paths"].as_object()?.iter().find(|(path, _)| is_its_list(path))?;
    let schema = &item["post"]["requestBody"]["content"]["application/json"]["schema"];
    let named = schema["$ref"].as_str().and_then(|at| at.rsplit('/').next());
    let schema = named.map_or(schema, |named| &document["components"]["schemas"][named]);
    let is_links = |schema: &Value| {
        let items = &schema["items"];
        items.is_object() && (items["type"] != "string" || items["format"] == "uuid")
    };
    let members = schema["properties"].as_object()?.iter().filter(|(_, schema)| !is_links(schema));
    let mut accepted: Vec<String> = members.map(|(wire, _)| wire.clone()).collect();
    accepted.retain(|wire| !["id", "instanceId"].contains(&wire.as_str()));
    accepted.sort_unstable();
    Some(accepted)
}

/// The fields of a form.
fn form_fields(page: &Page) -> Vec<String> {
    let form = page.html.split("data-edit").nth(1).unwrap().split("</form>").next().unwrap();
    let names = form.split(" name=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let mut names_of_fields: Vec<String> = names.collect();
    // the first `key` is the idempotency key
    names_of_fields.remove(names_of_fields.iter().position(|wire| wire == "key").unwrap());
    names_of_fields
        .retain(|wire| !["csrf", "another", "review"].contains(&wire.as_str()) && !wire.contains(".unit"));
    names_of_fields.sort_unstable();
    names_of_fields.dedup();
    names_of_fields
}

on_both_engines! {
    /// Lists and forms need no code of their own, and opening them writes nothing.
    async fn every_resource_has_its_pages(world: World) {
        let mut browser = administrator(&world).await;
        crate::sign_in::create_sign_in_data(&world).await;
        let lists = lists();
        assert!(lists.len() > 35, "{lists:?}");
        for path in &lists {
            let page = browser.open(path).await;
            assert_eq!(page.status, 200, "{path}: {}", page.html);
            assert_eq!(page.html.matches("<h1").count(), 1, "{path}");
            if page.html.contains(&format!("{path}/new\"")) {
                let form = browser.open(&format!("{path}/new")).await;
                assert_eq!(form.status, 200, "{path}/new: {}", form.html);
            }
            if let Some(rest) = page.html.split("scope=\"row\"").nth(1)
                && let Some(href) = rest.split("</th>").next().unwrap().split("href=\"").nth(1)
            {
                let href = href.split('"').next().unwrap();
                let item = browser.open(href).await;
                assert_eq!(item.status, 200, "{href}: {}", item.html);
            }
        }
    }

    /// An empty list describes its rows, and has the button that creates the first one.
    async fn an_empty_list_describes_its_resource(world: World) {
        let mut browser = administrator(&world).await;
        let mut seen = 0;
        for path in lists() {
            let page = browser.open(&path).await;
            let Some(empty) = page.html.split("<div class=\"empty\">").nth(1) else { continue };
            seen += 1;
            let empty = empty.split("</div>").next().unwrap();
            let text = empty.split("<p>").nth(1).unwrap().split("</p>").next().unwrap();
            assert!(empty.contains("Nothing here yet") && text.len() > 15, "{path}: {empty}");
            let head = page.html.split("<div class=\"empty\">").next().unwrap();
            assert_eq!(head.contains("data-new"), empty.contains("/new\""), "{path}: {empty}");
        }
        assert!(seen > 15, "{seen}");
    }

    /// A row created from a list that is filtered by an owner belongs to that owner.
    async fn a_row_created_from_a_filtered_list_belongs_to_its_owner(world: World) {
        let mut browser = administrator(&world).await;
        let customer = world.all("Customer").await[0].clone();
        let list = browser.open(&format!("/console/Subscription?of=customerId:{}", id(&customer))).await;
        let new = format!("/console/Subscription/new?customerId={}", id(&customer));
        assert!(list.html.contains(&format!("href=\"{new}\"")), "{}", list.html);
        let form = browser.open(&new).await;
        assert_eq!(form.field("customerId"), id(&customer), "{}", form.html);
        let unknown = browser.open("/console/Subscription?of=nothing:1").await;
        assert!(!unknown.html.contains("?nothing="), "{}", unknown.html);
    }

    /// Cards show the status of identity providers and users as text, with remedies.
    async fn cards_show_the_status_of_rows(world: World) {
        let mut browser = administrator(&world).await;
        let broken = create_instance(&world, "elsewhere", "OpenIdConnect").await;
        let path = format!("/console/IdpInstance/{}", id(&broken));
        let page = browser.open(&path).await;
        for text in ["Users cannot sign in here", "A setting is missing or invalid."] {
            assert!(page.html.contains(text), "{text}: {}", page.html);
        }
        assert!(page.html.contains(&format!("href=\"{path}/settings\"")), "{}", page.html);
        // and which one, with a link to it
        assert!(page.html.contains(&format!("href=\"{path}/settings#f-Authority\"")), "{}", page.html);
        let current = world.admin.get(&format!("{BASE}/IdpInstance/{}", id(&broken))).await.is(200).json();
        let off = json!({ "isActive": false, "concurrencyToken": current["concurrencyToken"] });
        world.admin.patch(&format!("{BASE}/IdpInstance/{}", id(&broken)), off).await.expect(202);
        let page = browser.open(&path).await;
        assert!(page.html.contains("Inactive: it is not offered at sign-in."), "{}", page.html);
        let filter = encode("name eq \"default\"");
        let own = world.admin.get(&format!("{BASE}/IdpInstance?filter={filter}")).await.is(200).json()[0].clone();
        let page = browser.open(&format!("/console/IdpInstance/{}", id(&own))).await;
        assert!(page.html.contains("Users can sign in here"), "{}", page.html);
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace" })).await.is(201).json();
        let page = browser.open(&format!("/console/store/default/User/{}", id(&user))).await;
        for text in ["Without a password", "0 / 2 Passkeys", "Too few passkeys", "They register another one when they sign in."] {
            assert!(page.html.contains(text), "{text}: {}", page.html);
        }
    }

    async fn a_row_is_created_changed_and_deleted(world: World) {
        let mut browser = administrator(&world).await;
        let subscription = tenant(&world).await["subscriptionId"].clone();
        let page = browser.open("/console/Tenant/new").await;
        let missing = post(&world, &mut browser, &page, "/console/Tenant/new", &[("description", "Kept")]).await;
        assert!(missing.status == 400 && missing.html.contains("href=\"#f-name\"") && missing.html.contains(">Kept<")
            || missing.html.contains("\nKept<"), "what was typed stays: {}", missing.html);
        let fields = [("name", "Harbour"), ("subscriptionId", subscription.as_str().unwrap()), ("isActive", "false"), ("isActive", "true")];
        let created = post(&world, &mut browser, &page, "/console/Tenant/new", &fields).await;
        assert!(created.status == 200 && created.html.contains("<h1>Harbour"), "{}", created.html);
        let path = created.address.split('?').next().unwrap().to_owned();
        let page = browser.open(&path).await;
        let review = save(&world, &mut browser, &path, &page, &[("name", "Quay"), ("review", "true")]).await;
        assert!(review.html.contains("Harbour") && review.html.contains("Quay") && review.html.contains("curl"), "{}", review.html);
        assert!(browser.open(&path).await.html.contains("<h1>Harbour"), "a review changes nothing");
        let review_text = unescaped(&review.html);
        let review_text = review_text.split_once("-d '").unwrap().1.split_once("' ").unwrap().0;
        let call: Value = serde_json::from_str(review_text).unwrap();
        let dry = format!("{BASE}/Tenant/{}?dryRun=true", path.rsplit('/').next().unwrap());
        assert!(review.html.contains(&dry), "{}", review.html);
        world.admin.patch(&dry, call).await.expect(202);
        // a repeated submission finds the row that the first one created
        let saved = save(&world, &mut browser, &path, &page, &[("name", "Quay")]).await;
        assert!(saved.status == 200 && saved.html.contains("<h1>Quay") && saved.html.contains("Saved"), "{}", saved.html);
        let twice = save(&world, &mut browser, &path, &page, &[("name", "Quay")]).await;
        assert!(twice.status == 200 && twice.html.contains("Saved"), "{}", twice.html);
        let page = browser.open(&path).await;
        let unchanged = save(&world, &mut browser, &path, &page, &[("name", "Quay")]).await;
        assert!(unchanged.html.contains("Nothing was changed"), "{}", unchanged.html);
        let confirmation = browser.open(&format!("{path}/delete")).await;
        assert_eq!(confirmation.status, 200, "{}", confirmation.html);
        // a tenant cannot be restored: its name must be typed
        let wrong = post(&world, &mut browser, &confirmation, &format!("{path}/delete"), &[("typed", "Harbour")]).await;
        assert!(wrong.status == 400 && wrong.html.contains("The name does not match"), "{}", wrong.html);
        let gone = post(&world, &mut browser, &confirmation, &format!("{path}/delete"), &[("typed", "Quay")]).await;
        assert!(gone.html.contains("Deleted") && !gone.html.contains("Quay"), "{}", gone.html);
        let trail = world.admin.get(&format!("{BASE}/CustomAuditTrail?sortOrder=descending&count=1")).await.is(200).json();
        assert_eq!((&trail[0]["area"], &trail[0]["action"]), (&json!("Tenant"), &json!("Deleted")));
    }

    /// Default lists are prefilled with one line each, so that an untouched form is valid.
    async fn a_scim_token_is_created_with_the_default_form(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/store/default/ScimToken/new";
        let page = browser.open(path).await;
        assert!(page.html.contains("Read\nWriteUsers\nWriteGroups\nDelete"), "{}", page.html);
        let lists = [("name", "Directory"), ("rights", "Read\r\nWriteUsers\r\nWriteGroups\r\nDelete"), ("networks", "")];
        let created = post(&world, &mut browser, &page, path, &lists).await;
        assert_eq!(created.status, 200, "{}", created.html);
        let token = created.html.split_once("chscim_").unwrap().1.split('<').next().unwrap();
        let directory = world.admin.with_token(&format!("chscim_{token}"));
        directory.get("/api/scim/v2/default/Users").await.expect(200);
        let list = browser.open("/console/store/default/ScimToken").await;
        assert!(list.html.contains("Directory") && list.html.contains("Created with its tokens"), "{}", list.html);
    }

    /// The signing secret of a webhook is shown when it is created, and when another one is.
    async fn secrets_of_webhooks_are_shown_once(world: World) {
        let mut browser = administrator(&world).await;
        for list in ["/console/EventSubscription", "/console/store/default/EventSubscription"] {
            let path = format!("{list}/new");
            let page = browser.open(&path).await;
            let fields = [("name", "Receiver"), ("url", "https://receiver.example/hook"), ("key", &*page.field("key"))];
            let created = post(&world, &mut browser, &page, &path, &fields).await;
            assert!(created.status == 200 && created.html.contains("whsec_"), "{}", created.html);
            let rows = browser.open(list).await;
            let one = rows.html.split(&format!("href=\"{list}/")).find_map(|rest| rest.split('"').next().filter(|id| id.len() == 36));
            let act = format!("{list}/{}/CreateEventSubscriptionSecret", one.unwrap());
            let page = browser.open(&act).await;
            let another = post(&world, &mut browser, &page, &act, &[("key", &page.field("key"))]).await;
            assert!(another.status == 200 && another.html.contains("whsec_"), "{}", another.html);
        }
    }

    /// The token of an instance is stored in an option, which no page shows: it is shown when it is created.
    async fn the_scim_token_of_an_instance_is_shown_once(world: World) {
        let mut browser = administrator(&world).await;
        let instance = create_instance(&world, "Partner", "OpenIdConnect").await;
        set_option(&world, &instance, "ScimEnabled", "true").await;
        let act = format!("/console/IdpInstance/{}/CreateIdpInstanceScimToken", id(&instance));
        let page = browser.open(&act).await;
        let created = post(&world, &mut browser, &page, &act, &[("key", &page.field("key"))]).await;
        assert!(created.status == 200 && created.html.contains("<h1>The new secret"), "{}", created.html);
        let token = created.html.split_once("chscim_").unwrap().1.split('<').next().unwrap();
        let directory = world.admin.with_token(&format!("chscim_{token}"));
        directory.get("/api/scim/v2/Partner/Users").await.expect(200);
    }

    /// Actions without effect are not offered: a token that was never stopped cannot be resumed.
    async fn only_a_stopped_token_can_be_resumed(world: World) {
        let mut browser = administrator(&world).await;
        world.set_option("ScimMassChangeLimit", "0").await;
        let created = world.admin.post(&world.path("/ScimToken"), json!({ "name": "Directory" })).await.is(201).json();
        let path = format!("/console/store/default/ScimToken/{}", id(&created));
        let act = format!("{path}/ResumeScimToken");
        assert!(!browser.open(&path).await.html.contains(&act));
        let directory = world.admin.with_token(created["token"].as_str().unwrap());
        let user = directory.post("/api/scim/v2/default/Users", json!({ "userName": "grace" })).await.is(201).json();
        directory.delete(&format!("/api/scim/v2/default/Users/{}", id(&user))).await.expect(403);
        assert!(browser.open(&path).await.html.contains(&act));
    }

    /// The form of a new row contains exactly the fields of the operation's body.
    async fn forms_contain_the_fields_of_their_operations(world: World) {
        let mut browser = administrator(&world).await;
        let document = async |service: &str| world.anonymous.get(&format!("/openapi/{service}-v2.json")).await.is(200).json();
        let (of_store, of_platform) = (document("userstore").await, document("management").await);
        let mut checked = 0;
        for list in lists() {
            let document = if list.starts_with("/console/store/") { &of_store } else { &of_platform };
            let name = list.rsplit('/').next().unwrap();
            // resources with a custom form have other fields
            let has_own = ["ClientApp", "Tenant", "CertStore", "RoleAssignment", "CustomView"].contains(&name);
            let Some(accepted) = accepted_fields(document, name).filter(|_| !has_own) else { continue };
            let page = browser.open(&format!("{list}/new")).await;
            if page.status == 200 {
                assert_eq!(form_fields(&page), accepted, "{list}");
                checked += 1;
            }
        }
        assert!(checked > 12, "{checked}");
    }

    /// No change is lost: the second user sees what the first one changed.
    async fn concurrent_changes_are_merged(world: World) {
        let mut browser = administrator(&world).await;
        let tenant = tenant(&world).await;
        let path = format!("/console/Tenant/{}", id(&tenant));
        let page = browser.open(&path).await;
        let body = json!({ "name": "Theirs", "concurrencyToken": tenant["concurrencyToken"] });
        world.admin.patch(&format!("{BASE}/Tenant/{}", id(&tenant)), body).await.expect(202);
        let merge = save(&world, &mut browser, &path, &page, &[("description", "Mine")]).await;
        assert!(merge.status == 409 && merge.html.contains("Theirs") && merge.html.contains("Mine"), "{}", merge.html);
        let yours = hidden(&merge, "merge");
        let chosen = [("name", "now"), ("description", "yours"), ("merge", yours.as_str())];
        let saved = save(&world, &mut browser, &path, &merge, &chosen).await;
        assert!(saved.html.contains("<h1>Theirs"), "{}", saved.html);
        let now = world.admin.get(&format!("{BASE}/Tenant/{}", id(&tenant))).await.is(200).json();
        assert_eq!((&now["name"], &now["description"]), (&json!("Theirs"), &json!("Mine")));
        // with the name of that user, and the time
        assert!(merge.html.contains("Changed by") && merge.html.contains("<time datetime="), "{}", merge.html);
    }

    /// A form is validated before it is sent, and then offers to create another one.
    async fn a_form_is_validated_before_it_is_sent(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/store/default/User/new";
        let page = browser.open(path).await;
        assert!(page.html.contains("data-check") && page.html.contains("<details class=\"card folded\">"), "{}", page.html);
        let key = page.field("key");
        for (name, status) in [("ada", 409), ("grace", 200)] {
            let fields = [("loginName", name), ("key", key.as_str()), ("check", "true")];
            let validated = post(&world, &mut browser, &page, path, &fields).await;
            assert_eq!((validated.status, validated.html.contains("f-loginName-wrong")), (status, status != 200), "{}", validated.html);
        }
        let fields = [("loginName", "grace"), ("key", key.as_str()), ("another", "true")];
        let created = post(&world, &mut browser, &page, path, &fields).await;
        assert!(created.html.contains("name=\"another\"") && created.html.contains("Created") && created.field("key") != key, "{}", created.html);
        let users = world.admin.get(&world.path("/User")).await.is(200).json();
        assert_eq!(users.as_array().unwrap().len(), 2);
    }

    /// A repeated submission creates one row.
    async fn a_repeated_submission_creates_no_second_row(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console/Customer/new").await;
        let key = page.field("key");
        let fields = [("name", "Once"), ("key", key.as_str())];
        for _ in 0..2 {
            let created = post(&world, &mut browser, &page, "/console/Customer/new", &fields).await;
            assert!(created.html.contains("<h1>Once"), "{}", created.html);
        }
        let all = world.admin.get(&format!("{BASE}/Customer")).await.is(200).json();
        assert_eq!(all.as_array().unwrap().len(), 2);
    }

    /// Names are rendered as text, whatever they contain.
    async fn names_are_escaped(world: World) {
        let mut browser = administrator(&world).await;
        let name = "<b onx>\"'&{{ 1 }}";
        let group = world.admin.post(&world.path("/Group"), json!({ "name": name })).await.is(201).json();
        let user = json!({ "loginName": "bold", "firstName": name, "lastName": name });
        let user = world.admin.post(&world.path("/User"), user).await.is(201).json();
        for path in [
            "/console/store/default/Group".to_owned(),
            format!("/console/store/default/Group/{}", id(&group)),
            "/console/store/default/User".to_owned(),
            format!("/console/store/default/User/{}", id(&user)),
            format!("/console/store/default/User/{}/delete", id(&user)),
            format!("/console/find?q={}", encode("<b")),
            format!("/console/store/default/Group?q={}", encode("\"><script>")),
            "/console/%3Cscript%3E".to_owned(),
        ] {
            let page = browser.open(&path).await;
            assert!(!page.html.contains("<b onx>") && !page.html.contains("<script>"), "{path}: {}", page.html);
        }
    }

    async fn lists_are_searched_and_paged(world: World) {
        let mut browser = administrator(&world).await;
        let users: Vec<Value> = (0..60).map(|number| json!({ "loginName": format!("worker{number:02}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        let page = browser.open("/console/store/default/User").await;
        assert_eq!(page.html.matches("name=\"selected\"").count(), 50);
        let next = page.html.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
        let rest = browser.open(&next).await;
        assert_eq!(rest.html.matches("name=\"selected\"").count(), 11);
        // the script requests the rows only
        let part = browser.open(&format!("{next}&part=1")).await;
        assert!(part.html.matches("name=\"selected\"").count() == 11 && !part.html.contains("<html"), "{}", part.html);
        let first = browser.open("/console/store/default/User?part=1").await;
        assert!(first.html.contains("rel=\"next\"") && !first.html.contains("part=1"), "{}", first.html);
        let results = browser.open("/console/store/default/User?q=worker1").await;
        assert_eq!(results.html.matches("name=\"selected\"").count(), 10);
        // rows are counted on request
        assert!(page.html.contains("counted=true\">Count all"), "{}", page.html);
        let counted = browser.open("/console/store/default/User?counted=true").await;
        assert!(counted.html.contains("In all: 61"), "{}", counted.html);
        // settings and actions are found like navigation entries, if the user may use them
        let lock = browser.open("/console/find?q=TemporaryLockDuration&part=1").await;
        assert!(lock.html.contains("/settings#f-TemporaryLockDuration\""), "{}", lock.html);
        let acts = browser.open("/console/find?q=new%20user&part=1").await;
        assert!(acts.html.contains("href=\"/console/store/default/User/new\""), "{}", acts.html);
        let none = browser.open("/console/store/default/User?q=nobody").await;
        assert!(none.html.contains("Nothing found") && none.status == 200, "{}", none.html);
        // substring search is on request, since it reads all rows
        let inside = browser.open("/console/store/default/User?q=ker1").await;
        assert!(inside.html.contains("q=ker1&amp;inside=true"), "{}", inside.html);
        let inside = browser.open("/console/store/default/User?q=ker1&inside=true").await;
        assert_eq!(inside.html.matches("name=\"selected\"").count(), 10);
        let part = browser.open("/console/find?q=worker00&part=1").await;
        assert!(part.html.contains("worker00") && !part.html.contains("<html"), "{}", part.html);
        let json = browser.open("/console/find?in=User&q=worker00").await;
        let listed: Value = serde_json::from_str(&json.html).unwrap();
        assert_eq!(listed[0]["label"], json!("worker00"));
    }

    /// Related rows are shown, added and removed on the page of either side.
    async fn related_rows_are_added_and_removed(world: World) {
        let mut browser = administrator(&world).await;
        let (user, group) = (world.user("member").await, world.group("Rowers").await);
        let path = format!("/console/store/default/User/{}/relation/memberOfGroups", id(&user));
        let item = browser.open(&format!("/console/store/default/User/{}", id(&user))).await;
        assert!(item.html.contains(&path), "{}", item.html);
        let page = browser.open(&path).await;
        let added = post(&world, &mut browser, &page, &format!("{path}/add"), &[("id", id(&group))]).await;
        assert!(added.status == 200 && added.html.contains("Rowers"), "{}", added.html);
        let other = format!("/console/store/default/Group/{}/relation/memberUsers", id(&group));
        let page = browser.open(&other).await;
        assert!(page.html.contains("member"), "{}", page.html);
        let out = post(&world, &mut browser, &page, &format!("{other}/remove"), &[("selected", id(&user))]).await;
        assert!(out.status == 200 && !out.html.contains(&format!("/User/{}", id(&user))), "{}", out.html);
        let wrong = post(&world, &mut browser, &out, &format!("{other}/add"), &[("id", "nobody")]).await;
        assert!(wrong.status == 400 && wrong.html.contains("class=\"problems\""), "{}", wrong.html);
        assert!(wrong.html.contains("value=\"nobody\""), "what was typed stays: {}", wrong.html);
    }

    /// Dependent rows are shown before the confirmation of a deletion.
    async fn dependent_rows_are_shown_before_a_deletion(world: World) {
        let mut browser = administrator(&world).await;
        let tenant = tenant(&world).await;
        let path = format!("/console/Subscription/{}/delete", tenant["subscriptionId"].as_str().unwrap());
        let page = browser.open(&path).await;
        assert_eq!(page.status, 409, "{}", page.html);
    }

    /// Locked users are a view, and one action unlocks them.
    async fn a_locked_user_is_found_and_unlocked(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.user("locked.out").await;
        let state = world.path(&format!("/User/{}/state", id(&user)));
        world.admin.post(&state, json!({ "isUserLocked": true })).await.expect(200);
        let list = browser.open("/console/store/default/User?view=locked").await;
        assert!(list.html.contains("locked.out") && list.html.contains("Locked"), "{}", list.html);
        let path = format!("/console/store/default/User/{}", id(&user));
        let page = browser.open(&path).await;
        assert!(page.html.contains("Cannot sign in") && page.html.contains("Locked by an administrator"), "{}", page.html);
        let act = browser.open(&format!("{path}/SetUserState")).await;
        let fields = [("isUserLocked", "false")];
        let done = post(&world, &mut browser, &act, &format!("{path}/SetUserState"), &fields).await;
        assert!(done.status == 200 && done.html.contains("Active"), "{}", done.html);
        // a temporary lock is removed on the card itself
        world.set_option("LoginThrottlingEnabled", "false").await;
        let reset = world.path(&format!("/User/{}/password/reset", id(&user)));
        world.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        let change = "/api/userstore/v2/default/PublicAdmin/user/loginname/locked.out/password/change";
        for _ in 0..5 {
            let body = json!({ "oldPassword": "wrong one here", "newPassword": "another lively heron" });
            world.anonymous.post(change, body).await;
        }
        let page = browser.open(&path).await;
        assert!(page.html.contains("Temporarily locked<"), "{}", page.html);
        let done = post(&world, &mut browser, &page, &format!("{path}/ResetAccessFailedCount"), &[]).await;
        assert!(done.html.contains("Can sign in"), "{}", done.html);
    }
}
