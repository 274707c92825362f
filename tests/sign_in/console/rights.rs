//! Forbidden actions are not offered, and refused if they are attempted: every page, for each role.

use std::collections::{BTreeMap, BTreeSet};

use chancery_resource::{ROLES, RoleType, ScopeKind};
use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{BASE, Browser, Page, administrator, assign, id, person, sign_in, unescaped};

/// What a page offers: the targets of its links, and its forms as a URL and the field of the button.
#[derive(Clone, Default)]
pub struct Offer {
    pub links: BTreeSet<String>,
    forms: BTreeSet<(String, Option<(String, String)>)>,
    /// Whether it is an empty list, which has no form for rows.
    is_empty: bool,
}

/// The visited pages, by URL.
pub type Walk = BTreeMap<String, Offer>;

/// The value of an attribute of the element at the start of a text.
pub fn attribute(element: &str, name: &str) -> Option<String> {
    let inside = element.split('>').next()?;
    let begin = format!("{name}=\"");
    Some(unescaped(inside.split_once(begin.as_str())?.1.split('"').next()?))
}

fn offer(page: &Page) -> Offer {
    let mut offer = Offer { is_empty: page.html.contains("<div class=\"empty\">"), ..Offer::default() };
    let links = page.html.split("<a ").skip(1).filter_map(|rest| attribute(rest, "href"));
    // links to help and the sign-out are available to everybody
    let is_own = |href: &String| href.starts_with("/console") && !href.contains("/console/find");
    offer.links = links.filter(is_own).collect();
    for form in page.html.split("<form ").skip(1).map(|rest| rest.split("</form>").next().unwrap()) {
        let is_everybodys = |action: &String| ["/console/me", "/console/signout"].contains(&action.as_str());
        let action = attribute(form, "action")
            .filter(|action| action.starts_with("/console/") && !is_everybodys(action));
        let Some(action) = action.filter(|_| attribute(form, "method").as_deref() == Some("post")) else {
            continue;
        };
        let buttons = form.split("<button").skip(1);
        for button in
            buttons.filter(|button| !button.starts_with(" disabled") && !button.contains("type=\"reset\""))
        {
            let sent = attribute(button, "name").zip(attribute(button, "value"));
            offer.forms.insert((action.clone(), sent));
        }
    }
    offer
}

/// The pattern of a URL, whichever row it names: one page represents all of its kind.
pub fn kind(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let is_key = |part: &&str| {
        part.len() == 36 && part.contains('-') || part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let parts: Vec<&str> =
        path.split('/').map(|part| if !part.is_empty() && is_key(&part) { "*" } else { part }).collect();
    let names: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    format!("{}?{}", parts.join("/"), names.join("&"))
}

/// Follows links from a page, to one page of each kind. Every shown link leads to a page.
pub async fn walk(
    browser: &mut Browser,
    (role, from): (&str, &str),
    is_followed: impl Fn(&str) -> bool,
    wrong: &mut Vec<String>,
) -> Walk {
    let mut walked = Walk::new();
    let mut waiting = vec![from.to_owned()];
    let mut known: BTreeSet<String> = waiting.iter().map(|address| kind(address)).collect();
    while let Some(address) = waiting.pop() {
        let page = browser.open(&address).await;
        if page.status != 200 && !is_in_the_way(&page) {
            wrong.push(format!("{role}: {address} is shown, and answers {}", page.status));
            continue;
        }
        // names are escaped on every page
        let is_html = page.answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        if is_html && page.html.contains("<b onx>") {
            wrong.push(format!("{role}: {address} takes a name for HTML"));
        }
        let mut offered = offer(&page);
        offered.links.retain(|href| is_followed(href));
        waiting.extend(offered.links.iter().filter(|href| known.insert(kind(href))).cloned());
        walked.insert(address, offered);
    }
    walked
}

/// Whether a page reports an unmet prerequisite.
fn is_in_the_way(page: &Page) -> bool {
    page.status == 409
}

/// What is wrong with a refusal: it must name the missing role, or hide the existence of the row.
fn wrong_refusal(page: &Page) -> Option<String> {
    let names_role = || ROLES.iter().any(|line| page.html.contains(role_in_words(line.role)));
    let names_carried = || ROLES.iter().any(|line| page.html.contains(line.role.name()));
    match page.status {
        403 if page.html.contains("It requires at least: ") && names_role() => None,
        403 if page.html.contains("This account or group has the role ") && names_role() => None,
        403 if page.html.contains(" carries the role ") && names_carried() => None,
        403 if page.html.contains("One of them has the role ") && names_carried() => None,
        403 if page.html.contains(", so changing it needs the role ") && names_carried() => None,
        404 => None,
        // an empty form changes nothing, and requires nothing
        200 if page.address.ends_with("done=unchanged") => None,
        403 => Some("names no role".to_owned()),
        status => Some(format!("answers {status}")),
    }
}

fn role_in_words(role: RoleType) -> &'static str {
    match role {
        RoleType::SystemAdmin => "Administrator of the installation",
        RoleType::CustomerAdmin => "Administrator of a customer",
        RoleType::SubscriptionAdmin => "Administrator of a subscription",
        RoleType::TenantAdmin => "Administrator of a tenant",
        RoleType::UserStoreAdmin => "Administrator of a user store",
        RoleType::UserAdmin => "Administrator of users",
        RoleType::ApplicationDataReader => "Reader of application data",
        RoleType::AuditTrailReader => "Reader of the audit trail",
    }
}

async fn send(
    world: &World,
    browser: &mut Browser,
    csrf: &str,
    (action, button): &(String, Option<(String, String)>),
) -> Page {
    let mut fields = vec![("csrf", csrf)];
    fields.extend(button.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    browser.post(action, &fields, &[("origin", &world.base)]).await
}

/// Everything that the first administrator sees and this user does not is refused: pages, links, and forms.
async fn try_hidden(
    world: &World,
    browser: &mut Browser,
    (role, csrf): (&str, &str),
    (all, own): (&Walk, &Walk),
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut tried: BTreeSet<String> =
        own.values().flat_map(|page| page.links.iter()).map(|href| kind(href)).collect();
    for (address, offered) in all {
        let shown = if let Some(shown) = own.get(address) {
            shown.clone()
        } else {
            let page = browser.open(address).await;
            let refused = wrong_refusal(&page).filter(|_| page.status != 200 && !is_in_the_way(&page));
            wrong.extend(refused.map(|what| format!("{role}: {address} {what}")));
            offer(&page)
        };
        // a link to an anchor of a shown page offers nothing more
        let leads_to_another_page =
            |href: &&String| own.contains_key(address) && !href.starts_with(&format!("{address}#"));
        for href in offered
            .links
            .difference(&shown.links)
            .filter(leads_to_another_page)
            .filter(|href| tried.insert(kind(href)))
        {
            let answer = browser.open(href).await;
            // a readable page may be opened by its URL, but must offer no forms
            let is_offered = answer.status == 200 && !offer(&answer).forms.is_empty();
            let message = || format!("{role}: {href} is not shown by {address}, and offers something");
            wrong.extend(is_offered.then(message));
        }
        let is_of_rows = |form: &&(String, _)| form.0.ends_with("/batch");
        for form in
            offered.forms.difference(&shown.forms).filter(|form| !(shown.is_empty && is_of_rows(form)))
        {
            if tried.insert(format!("{} {:?}", kind(&form.0), form.1)) {
                let answer = send(world, browser, csrf, form).await;
                wrong.extend(
                    wrong_refusal(&answer).map(|what| format!("{role}: {form:?} of {address} {what}")),
                );
            }
        }
    }
    wrong
}

/// Every shown form can be sent: it succeeds, or reports missing values.
async fn try_shown(
    world: &World,
    browser: &mut Browser,
    (role, csrf): (&str, &str),
    own: &Walk,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let forms: BTreeSet<_> = own.values().flat_map(|page| page.forms.iter()).collect();
    // a deletion was validated when its page was shown, and would delete rows that other forms need; so would the end of
    // a session; and a user without an image cannot delete it
    let left_out = ["/delete", "/SignOutApplicationUser", "/DeleteUserImage"];
    let is_tried = |action: &str| !left_out.iter().any(|end| action.ends_with(end));
    let mut kinds = BTreeSet::new();
    let forms = forms.into_iter().filter(|(action, _)| is_tried(action));
    for form in forms.filter(|(action, button)| kinds.insert(format!("{} {button:?}", kind(action)))) {
        let answer = send(world, browser, csrf, form).await;
        if [403, 404].contains(&answer.status) || answer.status >= 500 {
            wrong.push(format!("{role}: {form:?} is shown, and answers {}", answer.status));
        }
    }
    wrong
}

/// The scope of a role, as the body of an assignment.
async fn scope_body(world: &World, role: RoleType) -> Value {
    let (resource, member) = match role.line().given_at.first().unwrap() {
        ScopeKind::Customer => ("Customer", "applyToCustomerId"),
        ScopeKind::Subscription => ("Subscription", "applyToSubscriptionId"),
        ScopeKind::Tenant => ("Tenant", "applyToTenantId"),
        ScopeKind::UserStore | ScopeKind::IdpInstance => ("IdpInstance", "applyToIdpInstanceId"),
        ScopeKind::System | ScopeKind::Nothing => return json!({}),
    };
    let first = world.admin.get(&format!("{BASE}/{resource}")).await.is(200).json()[0].clone();
    if role == RoleType::ApplicationDataReader { json!({}) } else { json!({ member: first["id"] }) }
}

on_both_engines! {
    /// For each role and every page: shown actions are allowed, and hidden ones are refused with the name of the missing
    /// role.
    async fn shown_actions_are_allowed_and_hidden_ones_refused(world: World) {
        let mut first = administrator(&world).await;
        let mut signed_in = Vec::new();
        for line in ROLES.iter().filter(|line| line.role != RoleType::SystemAdmin) {
            let (role, name) = (line.role.name(), line.role.name().to_lowercase());
            let one = person(&world, &name).await;
            assign(&world, &one, role, scope_body(&world, line.role).await).await;
            let mut browser = Browser::new(&world);
            let page = sign_in(&mut browser, "/console", &name).await;
            assert_eq!(page.status, 200, "{role}: {}", page.html);
            signed_in.push((role, page.field("csrf"), browser));
        }
        // afterwards a sign-in requires more than a password
        crate::sign_in::create_sign_in_data(&world).await;
        let group = world.admin.post(&world.path("/Group"), json!({ "name": "Makers <b onx>" })).await.is(201).json();
        let member = json!({ "loginName": "member", "firstName": "<b onx>", "lastName": "<b onx>" });
        let user = world.admin.post(&world.path("/User"), member).await.is(201).json();
        for (name, more) in [("ClientApp", json!({})), ("Customer", json!({}))] {
            let mut body = json!({ "name": "<b onx>\"'&{{ 1 }}" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            world.make(name, body).await;
        }
        let members = world.path(&format!("/Group/{}/users", id(&group)));
        world.admin.post(&members, json!({ "relatedIds": [user["id"]] })).await.expect(202);
        let mut wrong = Vec::new();
        let users = world.admin.get(&world.path("/User")).await.is(200).json();
        let users = users.as_array().unwrap().iter().filter(|one| one["loginName"] != "member");
        let with_role: Vec<String> = users.map(|one| id(one).to_owned()).collect();
        let is_ordinary = |href: &str| !with_role.iter().any(|id| href.contains(&format!("/User/{id}")));
        let all = walk(&mut first, ("SystemAdmin", "/console"), is_ordinary, &mut wrong).await;
        assert!(all.len() > 100, "{:?}", all.keys());
        let csrf = first.open("/console").await.field("csrf");
        wrong.extend(try_shown(&world, &mut first, ("SystemAdmin", &csrf), &all).await);
        for (role, csrf, browser) in &mut signed_in {
            let (role, csrf) = (*role, csrf.as_str());
            let own = walk(browser, (role, "/console"), is_ordinary, &mut wrong).await;
            wrong.extend(try_hidden(&world, browser, (role, csrf), (&all, &own)).await);
            wrong.extend(try_shown(&world, browser, (role, csrf), &own).await);
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    /// Users and groups with a role that exceeds the own roles: protected actions are not offered, and refused if they
    /// are attempted. Others are offered.
    async fn actions_on_rows_with_higher_roles_are_not_offered(world: World) {
        let mut first = administrator(&world).await;
        let boss = world.admin.get(&world.path("/User")).await.is(200).json()[0].clone();
        let group = world.group("auditors").await;
        world.admin.post(&world.path("/Group/synchronize"), json!(null)).await.expect(200);
        let platform = world.all("ApplicationGroup?filter=name%20eq%20%22auditors%22").await[0].clone();
        let given = json!({ "principalType": "PlatformGroup", "principalId": platform["id"], "roleType": "AuditTrailReader" });
        world.make("RoleAssignment", given).await;
        let member = world.user("member").await;
        let members = world.path(&format!("/Group/{}/users", id(&group)));
        world.admin.post(&members, json!({ "relatedIds": [member["id"]] })).await.expect(202);
        world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
        let mut wrong = Vec::new();
        let mut helpers = Vec::new();
        for role in [RoleType::UserStoreAdmin, RoleType::SubscriptionAdmin, RoleType::CustomerAdmin] {
            let name = role.name().to_lowercase();
            let one = person(&world, &name).await;
            assign(&world, &one, role.name(), scope_body(&world, role).await).await;
            let mut browser = Browser::new(&world);
            let page = sign_in(&mut browser, "/console", &name).await;
            helpers.push((role.name(), page.field("csrf"), browser));
        }
        let store = "/console/store/default";
        for (start, id) in [("User", id(&boss)), ("User", id(&member)), ("Group", id(&group))] {
            let start = format!("{store}/{start}/{id}");
            let is_about = |href: &str| href.contains(id);
            let mut all = walk(&mut first, ("SystemAdmin", &start), is_about, &mut wrong).await;
            for offered in all.values_mut() {
                offered.forms.retain(|(action, _)| action.contains(id));
            }
            assert!(all.len() > 10, "{:?}", all.keys());
            for (role, csrf, browser) in &mut helpers {
                let (role, csrf) = (*role, csrf.as_str());
                let own = walk(browser, (role, &start), is_about, &mut wrong).await;
                wrong.extend(try_hidden(&world, browser, (role, csrf), (&all, &own)).await);
                wrong.extend(try_shown(&world, browser, (role, csrf), &own).await);
                let page = browser.open(&start).await;
                if !page.html.contains("This account or group has the role ") {
                    wrong.push(format!("{role}: {start} does not say why"));
                }
                let is_open = |name: &str| page.html.contains(&format!("id=\"f-{name}\""));
                let (open, protected) = if start.contains("/Group/") { ("name", "none") } else { ("nickname", "loginName") };
                if !is_open(open) || is_open(protected) {
                    wrong.push(format!("{role}: {start} asks for the wrong fields"));
                }
                for act in ["ResetPassword", "delete", "members", "relation/memberUsers"] {
                    if page.html.contains(&format!("href=\"{start}/{act}\"")) {
                        wrong.push(format!("{role}: {start} leads to {act}"));
                    }
                }
            }
        }
        // such rows cannot be selected in lists, and relations to such groups cannot be changed
        let (role, _, browser) = &mut helpers[0];
        let ordinary = world.user("ordinary").await;
        for (list, id, can) in [("User", id(&boss), false), ("User", id(&member), false), ("User", id(&ordinary), true), ("Group", id(&group), false)] {
            let page = browser.open(&format!("{store}/{list}")).await;
            let is_chosen = page.html.contains(&format!("name=\"selected\" value=\"{id}\""));
            if is_chosen != can {
                wrong.push(format!("{role}: {list} {id}: {is_chosen}"));
            }
        }
        let page = browser.open(&format!("{store}/User/{}/relation/memberOfGroups", id(&member))).await;
        if page.html.contains("name=\"selected\"") || !page.html.contains("This account or group has the role ") {
            wrong.push(format!("{role}: the group of {member} can be taken away"));
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}
