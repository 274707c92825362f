//! The pattern that serves every resource: lists, forms, review, merge, deletion.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Browser, PASSWORD, Page, administrator, encode, hidden, post, unescaped};
use crate::{
    id,
    management::instance::{make, set_option},
};

/// The lists of the interface: every path with a list that takes no more of the path.
pub fn lists() -> Vec<String> {
    let mut found = Vec::new();
    for service in [&chancery_userstore::SERVICE, &chancery_management::SERVICE] {
        for op in service.all() {
            let path = op.path.strip_prefix("/administration").unwrap_or(op.path);
            let is_list = op.method == chancery_resource::Method::Get && op.reply.is_list();
            if is_list && path.matches('/').count() == 1 && !path.contains('{') {
                let store = if service.base.contains("{userstore}") { "/store/default" } else { "" };
                let name = if path.contains('-') { op.shape.name } else { path.trim_start_matches('/') };
                found.push(format!("/console{store}/{name}"));
            }
        }
    }
    found
}

async fn tenant(world: &World) -> Value {
    world.admin.get(&format!("{BASE}/Tenant")).await.is(200).json()[0].clone()
}

/// Posts the form of one, opened now, with these fields changed.
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

/// The members that the creation of a resource takes and a form asks: an id is made by the server, the address says where a row is,
/// and links are made on its page.
fn taken(document: &Value, name: &str) -> Option<Vec<String>> {
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
    let mut taken: Vec<String> = members.map(|(wire, _)| wire.clone()).collect();
    taken.retain(|wire| !["id", "instanceId"].contains(&wire.as_str()));
    taken.sort_unstable();
    Some(taken)
}

/// The fields that a form asks.
fn asked(page: &Page) -> Vec<String> {
    let form = page.html.split("data-edit").nth(1).unwrap().split("</form>").next().unwrap();
    let names = form.split(" name=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let mut asked: Vec<String> = names.collect();
    // the first key is that by which a form that is sent twice is known
    asked.remove(asked.iter().position(|wire| wire == "key").unwrap());
    asked.retain(|wire| !["csrf", "another", "review"].contains(&wire.as_str()) && !wire.contains(".unit"));
    asked.sort_unstable();
    asked.dedup();
    asked
}

on_both_engines! {
    /// No list and no form of a resource needs a line of its own, and looking at them writes nothing.
    async fn every_resource_has_its_pages(world: World) {
        let mut browser = administrator(&world).await;
        crate::sign_in::leave_traces(&world).await;
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

    /// A list without rows says what would be there, and has the button that makes the first.
    async fn an_empty_list_says_what_would_be_there(world: World) {
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

    /// What is made from the list of what belongs to somebody belongs to them.
    async fn a_new_one_belongs_to_whom_the_list_is_of(world: World) {
        let mut browser = administrator(&world).await;
        let customer = world.all("Customer").await[0].clone();
        let list = browser.open(&format!("/console/Subscription?of=customerId:{}", id(&customer))).await;
        let new = format!("/console/Subscription/new?customerId={}", id(&customer));
        assert!(list.html.contains(&format!("href=\"{new}\"")), "{}", list.html);
        let form = browser.open(&new).await;
        assert_eq!(form.field("customerId"), id(&customer), "{}", form.html);
        let made_up = browser.open("/console/Subscription?of=nothing:1").await;
        assert!(!made_up.html.contains("?nothing="), "{}", made_up.html);
    }

    /// Cards say how an identity provider and a user stand, in words, with what mends it.
    async fn cards_say_how_things_stand(world: World) {
        let mut browser = administrator(&world).await;
        let broken = make(&world, "elsewhere", "OpenIdConnect").await;
        let path = format!("/console/IdpInstance/{}", id(&broken));
        let page = browser.open(&path).await;
        for text in ["Nobody can sign in here", "A setting is missing, or cannot be read."] {
            assert!(page.html.contains(text), "{text}: {}", page.html);
        }
        assert!(page.html.contains(&format!("href=\"{path}/settings\"")), "{}", page.html);
        // and which one, with the way to it
        assert!(page.html.contains(&format!("href=\"{path}/settings#f-Authority\"")), "{}", page.html);
        let current = world.admin.get(&format!("{BASE}/IdpInstance/{}", id(&broken))).await.is(200).json();
        let off = json!({ "isActive": false, "concurrencyToken": current["concurrencyToken"] });
        world.admin.patch(&format!("{BASE}/IdpInstance/{}", id(&broken)), off).await.expect(202);
        let page = browser.open(&path).await;
        assert!(page.html.contains("Not active: nobody is offered it."), "{}", page.html);
        let filter = encode("name eq \"default\"");
        let own = world.admin.get(&format!("{BASE}/IdpInstance?filter={filter}")).await.is(200).json()[0].clone();
        let page = browser.open(&format!("/console/IdpInstance/{}", id(&own))).await;
        assert!(page.html.contains("People can sign in here"), "{}", page.html);
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace" })).await.is(201).json();
        let page = browser.open(&format!("/console/store/default/User/{}", id(&user))).await;
        for text in ["Without a password", "0 / 2 Passkeys", "Too few passkeys", "They register another one when they sign in."] {
            assert!(page.html.contains(text), "{text}: {}", page.html);
        }
    }

    async fn one_is_made_changed_and_deleted(world: World) {
        let mut browser = administrator(&world).await;
        let subscription = tenant(&world).await["subscriptionId"].clone();
        let page = browser.open("/console/Tenant/new").await;
        let missing = post(&world, &mut browser, &page, "/console/Tenant/new", &[("description", "Kept")]).await;
        assert!(missing.status == 400 && missing.html.contains("href=\"#f-name\"") && missing.html.contains(">Kept<")
            || missing.html.contains("\nKept<"), "what was typed stays: {}", missing.html);
        let fields = [("name", "Harbour"), ("subscriptionId", subscription.as_str().unwrap()), ("isActive", "false"), ("isActive", "true")];
        let made = post(&world, &mut browser, &page, "/console/Tenant/new", &fields).await;
        assert!(made.status == 200 && made.html.contains("<h1>Harbour"), "{}", made.html);
        let path = made.address.split('?').next().unwrap().to_owned();
        let page = browser.open(&path).await;
        let review = save(&world, &mut browser, &path, &page, &[("name", "Quay"), ("review", "true")]).await;
        assert!(review.html.contains("Harbour") && review.html.contains("Quay") && review.html.contains("curl"), "{}", review.html);
        assert!(browser.open(&path).await.html.contains("<h1>Harbour"), "a review changes nothing");
        let told = unescaped(&review.html);
        let told = told.split_once("-d '").unwrap().1.split_once("' ").unwrap().0;
        let call: Value = serde_json::from_str(told).unwrap();
        let dry = format!("{BASE}/Tenant/{}?dryRun=true", path.rsplit('/').next().unwrap());
        assert!(review.html.contains(&dry), "{}", review.html);
        world.admin.patch(&dry, call).await.expect(202);
        // a second click finds what the first has done
        let saved = save(&world, &mut browser, &path, &page, &[("name", "Quay")]).await;
        assert!(saved.status == 200 && saved.html.contains("<h1>Quay") && saved.html.contains("Saved"), "{}", saved.html);
        let twice = save(&world, &mut browser, &path, &page, &[("name", "Quay")]).await;
        assert!(twice.status == 200 && twice.html.contains("Saved"), "{}", twice.html);
        let page = browser.open(&path).await;
        let unchanged = save(&world, &mut browser, &path, &page, &[("name", "Quay")]).await;
        assert!(unchanged.html.contains("Nothing was changed"), "{}", unchanged.html);
        let ask = browser.open(&format!("{path}/delete")).await;
        assert_eq!(ask.status, 200, "{}", ask.html);
        // nobody brings a tenant back: its name is typed
        let wrong = post(&world, &mut browser, &ask, &format!("{path}/delete"), &[("typed", "Harbour")]).await;
        assert!(wrong.status == 400 && wrong.html.contains("This is not the name"), "{}", wrong.html);
        let gone = post(&world, &mut browser, &ask, &format!("{path}/delete"), &[("typed", "Quay")]).await;
        assert!(gone.html.contains("Deleted") && !gone.html.contains("Quay"), "{}", gone.html);
        let trail = world.admin.get(&format!("{BASE}/CustomAuditTrail?sortOrder=descending&count=1")).await.is(200).json();
        assert_eq!((&trail[0]["area"], &trail[0]["action"]), (&json!("Tenant"), &json!("Deleted")));
    }

    /// Lists that have a default stand in the form a line each, so that what was not touched is good as it is.
    async fn a_token_is_made_by_the_form_as_it_is(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/store/default/ScimToken/new";
        let page = browser.open(path).await;
        assert!(page.html.contains("Read\nWriteUsers\nWriteGroups\nDelete"), "{}", page.html);
        let lists = [("name", "Directory"), ("rights", "Read\r\nWriteUsers\r\nWriteGroups\r\nDelete"), ("networks", "")];
        let made = post(&world, &mut browser, &page, path, &lists).await;
        assert_eq!(made.status, 200, "{}", made.html);
        let token = made.html.split_once("chscim_").unwrap().1.split('<').next().unwrap();
        let directory = world.admin.with_token(&format!("chscim_{token}"));
        directory.get("/api/scim/v2/default/Users").await.expect(200);
        let list = browser.open("/console/store/default/ScimToken").await;
        assert!(list.html.contains("Directory") && list.html.contains("What tokens of its line made"), "{}", list.html);
    }

    /// What a webhook is signed with is shown when it is made, and when another one is.
    async fn secrets_of_webhooks_are_shown_once(world: World) {
        let mut browser = administrator(&world).await;
        for list in ["/console/EventSubscription", "/console/store/default/EventSubscription"] {
            let path = format!("{list}/new");
            let page = browser.open(&path).await;
            let fields = [("name", "Receiver"), ("url", "https://receiver.example/hook"), ("key", &*page.field("key"))];
            let made = post(&world, &mut browser, &page, &path, &fields).await;
            assert!(made.status == 200 && made.html.contains("whsec_"), "{}", made.html);
            let rows = browser.open(list).await;
            let one = rows.html.split(&format!("href=\"{list}/")).find_map(|rest| rest.split('"').next().filter(|id| id.len() == 36));
            let act = format!("{list}/{}/CreateEventSubscriptionSecret", one.unwrap());
            let page = browser.open(&act).await;
            let another = post(&world, &mut browser, &page, &act, &[("key", &page.field("key"))]).await;
            assert!(another.status == 200 && another.html.contains("whsec_"), "{}", another.html);
        }
    }

    /// The token of an instance is kept in an option, which no page shows: it is shown when it is made.
    async fn the_token_of_an_instance_is_shown_once(world: World) {
        let mut browser = administrator(&world).await;
        let instance = make(&world, "Partner", "OpenIdConnect").await;
        set_option(&world, &instance, "ScimEnabled", "true").await;
        let act = format!("/console/IdpInstance/{}/CreateIdpInstanceScimToken", id(&instance));
        let page = browser.open(&act).await;
        let made = post(&world, &mut browser, &page, &act, &[("key", &page.field("key"))]).await;
        assert!(made.status == 200 && made.html.contains("<h1>The new secret"), "{}", made.html);
        let token = made.html.split_once("chscim_").unwrap().1.split('<').next().unwrap();
        let directory = world.admin.with_token(&format!("chscim_{token}"));
        directory.get("/api/scim/v2/Partner/Users").await.expect(200);
    }

    /// An act that would change nothing is not offered: a token that was never stopped needs nobody who lets it go on.
    async fn only_a_stopped_token_is_let_go_on(world: World) {
        let mut browser = administrator(&world).await;
        world.set_option("ScimMassChangeLimit", "0").await;
        let made = world.admin.post(&world.path("/ScimToken"), json!({ "name": "Directory" })).await.is(201).json();
        let path = format!("/console/store/default/ScimToken/{}", id(&made));
        let act = format!("{path}/ResumeScimToken");
        assert!(!browser.open(&path).await.html.contains(&act));
        let directory = world.admin.with_token(made["token"].as_str().unwrap());
        let user = directory.post("/api/scim/v2/default/Users", json!({ "userName": "grace" })).await.is(201).json();
        directory.delete(&format!("/api/scim/v2/default/Users/{}", id(&user))).await.expect(403);
        assert!(browser.open(&path).await.html.contains(&act));
    }

    /// The form of a new one asks what the interface takes: each field of its body, and nothing else.
    async fn forms_ask_what_the_interface_takes(world: World) {
        let mut browser = administrator(&world).await;
        let document = async |service: &str| world.anonymous.get(&format!("/openapi/{service}-v2.json")).await.is(200).json();
        let (of_store, of_platform) = (document("userstore").await, document("management").await);
        let mut looked_at = 0;
        for list in lists() {
            let document = if list.starts_with("/console/store/") { &of_store } else { &of_platform };
            let name = list.rsplit('/').next().unwrap();
            // what has a form of its own asks other things
            let has_own = ["ClientApp", "Tenant", "CertStore", "RoleAssignment", "CustomView"].contains(&name);
            let Some(taken) = taken(document, name).filter(|_| !has_own) else { continue };
            let page = browser.open(&format!("{list}/new")).await;
            if page.status == 200 {
                assert_eq!(asked(&page), taken, "{list}");
                looked_at += 1;
            }
        }
        assert!(looked_at > 12, "{looked_at}");
    }

    /// Nobody's change is lost: the second of two sees what the first changed.
    async fn two_at_once_are_merged(world: World) {
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
        // who changed it, and when, is told
        assert!(merge.html.contains("Changed by") && merge.html.contains("<time datetime="), "{}", merge.html);
    }

    /// A form is judged before it is sent, and the next one is at hand.
    async fn a_new_one_is_judged_while_it_is_typed(world: World) {
        let mut browser = administrator(&world).await;
        let path = "/console/store/default/User/new";
        let page = browser.open(path).await;
        assert!(page.html.contains("data-check") && page.html.contains("<details class=\"card folded\">"), "{}", page.html);
        let key = page.field("key");
        for (name, status) in [("ada", 409), ("grace", 200)] {
            let fields = [("loginName", name), ("key", key.as_str()), ("check", "true")];
            let judged = post(&world, &mut browser, &page, path, &fields).await;
            assert_eq!((judged.status, judged.html.contains("f-loginName-wrong")), (status, status != 200), "{}", judged.html);
        }
        let fields = [("loginName", "grace"), ("key", key.as_str()), ("another", "true")];
        let made = post(&world, &mut browser, &page, path, &fields).await;
        assert!(made.html.contains("name=\"another\"") && made.html.contains("Created") && made.field("key") != key, "{}", made.html);
        let users = world.admin.get(&world.path("/User")).await.is(200).json();
        assert_eq!(users.as_array().unwrap().len(), 2);
    }

    /// A form that is sent twice makes one.
    async fn a_second_click_makes_no_second(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open("/console/Customer/new").await;
        let key = page.field("key");
        let fields = [("name", "Once"), ("key", key.as_str())];
        for _ in 0..2 {
            let made = post(&world, &mut browser, &page, "/console/Customer/new", &fields).await;
            assert!(made.html.contains("<h1>Once"), "{}", made.html);
        }
        let all = world.admin.get(&format!("{BASE}/Customer")).await.is(200).json();
        assert_eq!(all.as_array().unwrap().len(), 2);
    }

    /// What people are called is text, whatever it looks like.
    async fn names_are_text(world: World) {
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

    async fn lists_are_searched_and_go_on(world: World) {
        let mut browser = administrator(&world).await;
        let users: Vec<Value> = (0..60).map(|number| json!({ "loginName": format!("worker{number:02}") })).collect();
        world.admin.post(&world.path("/User/batch"), json!(users)).await.expect(200);
        let page = browser.open("/console/store/default/User").await;
        assert_eq!(page.html.matches("name=\"selected\"").count(), 50);
        let next = page.html.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
        let rest = browser.open(&next).await;
        assert_eq!(rest.html.matches("name=\"selected\"").count(), 11);
        // the script asks for the rows alone
        let part = browser.open(&format!("{next}&part=1")).await;
        assert!(part.html.matches("name=\"selected\"").count() == 11 && !part.html.contains("<html"), "{}", part.html);
        let first = browser.open("/console/store/default/User?part=1").await;
        assert!(first.html.contains("rel=\"next\"") && !first.html.contains("part=1"), "{}", first.html);
        let found = browser.open("/console/store/default/User?q=worker1").await;
        assert_eq!(found.html.matches("name=\"selected\"").count(), 10);
        // how many there are is counted for who asks
        assert!(page.html.contains("counted=true\">Count all"), "{}", page.html);
        let counted = browser.open("/console/store/default/User?counted=true").await;
        assert!(counted.html.contains("In all: 61"), "{}", counted.html);
        // settings and acts are found as places are, by who may do them
        let lock = browser.open("/console/find?q=TemporaryLockDuration&part=1").await;
        assert!(lock.html.contains("/settings#f-TemporaryLockDuration\""), "{}", lock.html);
        let acts = browser.open("/console/find?q=new%20user&part=1").await;
        assert!(acts.html.contains("href=\"/console/store/default/User/new\""), "{}", acts.html);
        let none = browser.open("/console/store/default/User?q=nobody").await;
        assert!(none.html.contains("Nothing found") && none.status == 200, "{}", none.html);
        // what stands inside of names is looked for by who asks, since it reads all of them
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

    /// Links are seen, added and taken out, on the page of either end.
    async fn links_are_added_and_taken_out(world: World) {
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

    /// What hangs on it is said before anybody is asked.
    async fn what_is_in_the_way_is_said(world: World) {
        let mut browser = administrator(&world).await;
        let tenant = tenant(&world).await;
        let path = format!("/console/Subscription/{}/delete", tenant["subscriptionId"].as_str().unwrap());
        let page = browser.open(&path).await;
        assert_eq!(page.status, 409, "{}", page.html);
    }

    /// Locked people are a view, and one act away from signing in again.
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
        // of a lock for a while the card itself is the way out
        world.set_option("LoginThrottlingEnabled", "false").await;
        let reset = world.path(&format!("/User/{}/password/reset", id(&user)));
        world.admin.post(&reset, json!({ "newPassword": PASSWORD })).await.expect(200);
        let change = "/api/userstore/v2/default/PublicAdmin/user/loginname/locked.out/password/change";
        for _ in 0..5 {
            let body = json!({ "oldPassword": "wrong one here", "newPassword": "another lively heron" });
            world.anonymous.post(change, body).await;
        }
        let page = browser.open(&path).await;
        assert!(page.html.contains("Locked for now<"), "{}", page.html);
        let done = post(&world, &mut browser, &page, &format!("{path}/ResetAccessFailedCount"), &[]).await;
        assert!(done.html.contains("Can sign in"), "{}", done.html);
    }
}
