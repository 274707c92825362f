//! Questions that people answer before a sign-in completes.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, PASSWORD, SignInApp,
    administrator::console,
    browser::{Browser, Page},
    change, claim_rules, claims, external, first, parameter, relate,
    second_factor::typed,
    tenant_option,
};
use crate::{id, pointers, provider_trial::allow_loopback};

/// Creates an item of the home's tenant, with further members.
async fn create_item(world: &World, home: &SignInApp, key: &str, members: Value) -> Value {
    let mut item = json!({ "tenantId": home.tenant, "key": key, "label": format!("Your {key}?") });
    item.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    world.make("UserQuestionnaireItem", item).await
}

/// The form field for the answer to an item.
fn field(item: &Value) -> String {
    format!("item-{}", id(item))
}

/// Submits answers.
async fn answer(browser: &mut Browser, page: &Page, answers: &[(&Value, &str)]) -> Page {
    let named: Vec<_> = answers.iter().map(|(item, text)| (field(item), *text)).collect();
    let fields: Vec<_> = named.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    browser.submit(page, &fields).await
}

fn is_question_page(page: &Page) -> bool {
    page.address.contains("/signin/questionnaire") && page.html.contains("A few questions about you")
}

/// Submits the only answer; whether the page is shown again with this problem at the field.
async fn is_refused(browser: &mut Browser, page: &Page, item: &Value, text: &str, problem: &str) -> bool {
    let again = answer(browser, page, &[(item, text)]).await;
    let shown = format!("name=\"{}\"", field(item));
    let (_, input) = again.html.split_once(&shown).unwrap_or_else(|| panic!("{}", again.html));
    let input = input.split('>').next().unwrap();
    is_question_page(&again) && again.html.contains(problem) && input.contains("aria-invalid=\"true\"")
}

/// Whether the sign-in completes with a code.
async fn completes(browser: &mut Browser, page: &Page) -> bool {
    if is_question_page(page) {
        return false;
    }
    parameter(&browser.continue_to_app(page).await, "code").is_some()
}

/// The entries of Ann in her store.
async fn entries(world: &World, home: &SignInApp) -> Vec<(String, String)> {
    let path = world.path(&format!("/user/{}/UserProfile", id(&home.user)));
    let all = world.admin.get(&path).await.is(200).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.as_array().unwrap().iter().map(|entry| (text(&entry["key"]), text(&entry["value"]))).collect()
}

/// The user Ann in her store.
async fn ann(world: &World, home: &SignInApp) -> Value {
    world.admin.get(&world.path(&format!("/User/{}", id(&home.user)))).await.is(200).json()
}

on_both_engines! {
    /// - Effect of `UserQuestionnaireItem.isRequired`: Nobody signs in at the tenant without an answer, other than to the platform; an
    ///   optional item is asked once, and may be left out.
    async fn a_required_question_is_answered_before_the_sign_in_ends(world: World) {
        let home = SignInApp::new(&world).await;
        let item = create_item(&world, &home, "department", json!({ "isRequired": true })).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(is_question_page(&page) && page.html.contains("Your department? (required)"), "{}", page.html);
        assert!(!page.html.contains("Not now"), "{}", page.html);
        for blank in ["", "  "] {
            assert!(is_refused(&mut browser, &page, &item, blank, "Fill this in.").await);
        }
        // a choice that the page does not offer skips nothing
        let later = browser.submit(&page, &[("choice", "later")]).await;
        assert!(is_question_page(&later), "{}", later.html);
        let cancelled = browser.submit(&later, &[("choice", "cancel")]).await;
        assert_eq!(parameter(&browser.continue_to_app(&cancelled).await, "error").as_deref(), Some("access_denied"));
        assert_eq!(entries(&world, &home).await, []);
        // the answer is still required
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let next = answer(&mut browser, &page, &[(&item, "Sales")]).await;
        assert!(completes(&mut browser, &next).await);
        assert_eq!(entries(&world, &home).await, [("department".to_owned(), "Sales".to_owned())]);
        let entry = world.admin.get(&world.path("/CustomAuditTrail?filter=area%20eq%20%22UserProfile%22")).await.is(200).json();
        assert_eq!((&entry[0]["action"], &entry[0]["user"]), (&json!("Added"), &home.user["id"]), "{entry}");
        // and not asked again
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(completes(&mut browser, &page).await);
    }

    async fn an_optional_question_is_asked_once_and_a_new_one_again(world: World) {
        let home = SignInApp::new(&world).await;
        let optional = json!({ "isRequired": false });
        let hobby = create_item(&world, &home, "hobby", optional.clone()).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(is_question_page(&page) && page.html.contains("Your hobby?") && !page.html.contains("(required)"), "{}", page.html);
        // its id is submitted, although the answer is blank
        let again = browser.submit(&page, &[]).await;
        assert!(is_question_page(&again) && again.html.contains("The questions have changed"), "{}", again.html);
        let next = answer(&mut browser, &again, &[(&hobby, "")]).await;
        assert!(completes(&mut browser, &next).await);
        assert_eq!(entries(&world, &home).await, []);
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(completes(&mut browser, &page).await);
        // another item is new for the person, and a button skips it
        create_item(&world, &home, "pet", optional.clone()).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(is_question_page(&page) && page.html.contains("Your pet?") && !page.html.contains("Your hobby?"), "{}", page.html);
        assert!(page.html.contains("Not now"), "{}", page.html);
        let next = browser.submit(&page, &[("choice", "later")]).await;
        assert!(completes(&mut browser, &next).await);
        // an optional question is not asked with a session alone
        create_item(&world, &home, "song", optional).await;
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some(), "{silent}");
        // an item that became required is asked, also with a session
        change(&world, &format!("/UserQuestionnaireItem/{}", id(&hobby)), json!({ "isRequired": true })).await;
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("interaction_required"));
        let page = browser.open(&home.request(&[])).await;
        assert!(is_question_page(&page) && page.html.contains("Your hobby? (required)"), "{}", page.html);
    }

    /// - Effect of `UserQuestionnaireItem.key`: The answer is stored in the field of the user that has this name, or as an entry with this
    ///   key; apps get it as that claim.
    async fn the_key_selects_the_field_and_the_claim_of_an_answer(world: World) {
        let home = SignInApp::new(&world).await;
        let entry = create_item(&world, &home, "cost-centre", json!({ "position": 1 })).await;
        let nickname = create_item(&world, &home, "nickname", json!({ "position": 2 })).await;
        let picture = create_item(&world, &home, "picture", json!({ "position": 3 })).await;
        // known values are not asked for
        create_item(&world, &home, "firstName", json!({ "position": 4 })).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(!page.html.contains("Your firstName?"), "{}", page.html);
        assert!(page.html.contains("autocomplete=\"nickname\"") && page.html.contains("autocomplete=\"off\""), "{}", page.html);
        let given = [(&entry, "4711"), (&nickname, " Annie "), (&picture, "https://example.com/ann.png")];
        let next = answer(&mut browser, &page, &given).await;
        let code = parameter(&browser.continue_to_app(&next).await, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let id_claims = claims(&tokens["id_token"]);
        assert_eq!((&id_claims["cost-centre"], &id_claims["nickname"]), (&json!("4711"), &json!("Annie")), "{id_claims}");
        assert_eq!(claim_rules::userinfo(&world, &tokens).await["cost-centre"], "4711");
        assert_eq!(ann(&world, &home).await["nickname"], "Annie");
        assert_eq!(entries(&world, &home).await, [("cost-centre".to_owned(), "4711".to_owned())]);
        // the platform user is updated from the store
        let people = world.all("ApplicationUser").await;
        let person = people.as_array().unwrap().iter().find(|one| one["id"] == id_claims["sub"]).unwrap();
        assert_eq!((&person["picture"], &person["userProfiles"]), (&json!("https://example.com/ann.png"), &json!([])));
    }

    /// - Effect of `UserQuestionnaireItem.label`: The page shows this text as the question.
    async fn the_page_shows_the_label(world: World) {
        let home = SignInApp::new(&world).await;
        let item = create_item(&world, &home, "team", json!({ "label": "Which <team>?" })).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("Which &lt;team&gt;?"), "{}", page.html);
        change(&world, &format!("/UserQuestionnaireItem/{}", id(&item)), json!({ "label": "In which crew?" })).await;
        let page = browser.open(&page.address).await;
        assert!(page.html.contains("In which crew? (required)") && !page.html.contains("team"), "{}", page.html);
        // the rest of the page is in the person's language
        let (_, page) = typed(&world, &home, &[("ui_locales", "de")]).await;
        assert!(page.html.contains("Ein paar Fragen an Sie") && page.html.contains("In which crew? (erforderlich)"), "{}", page.html);
    }

    /// - Effect of `UserQuestionnaireItem.position`: Items are asked in ascending order of their position.
    async fn questions_are_in_the_order_of_their_positions(world: World) {
        let home = SignInApp::new(&world).await;
        let first = create_item(&world, &home, "alpha", json!({ "position": 1 })).await;
        create_item(&world, &home, "beta", json!({ "position": 2 })).await;
        let is_before = |page: &Page, one: &str, other: &str| {
            let at = |key: &str| page.html.find(&format!("Your {key}?")).unwrap();
            at(one) < at(other)
        };
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(is_before(&page, "alpha", "beta"), "{}", page.html);
        change(&world, &format!("/UserQuestionnaireItem/{}", id(&first)), json!({ "position": 3 })).await;
        assert!(is_before(&browser.open(&page.address).await, "beta", "alpha"));
    }

    /// - Effect of `UserQuestionnaireItem.minLength`: Shorter answers are refused.
    async fn the_minimum_length_of_an_answer_is_enforced(world: World) {
        let home = SignInApp::new(&world).await;
        let item = create_item(&world, &home, "initials", json!({ "minLength": 2 })).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("At least 2 characters"), "{}", page.html);
        assert!(is_refused(&mut browser, &page, &item, "ä", "The answer is too short.").await);
        let next = answer(&mut browser, &page, &[(&item, "äö")]).await;
        assert!(completes(&mut browser, &next).await);
    }

    /// - Effect of `UserQuestionnaireItem.maxLength`: Longer answers are refused.
    async fn the_maximum_length_of_an_answer_is_enforced(world: World) {
        let home = SignInApp::new(&world).await;
        let item = create_item(&world, &home, "initials", json!({ "maxLength": 2 })).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("At most 2 characters"), "{}", page.html);
        assert!(is_refused(&mut browser, &page, &item, "abc", "The answer is too long.").await);
        let next = answer(&mut browser, &page, &[(&item, "ab")]).await;
        assert!(completes(&mut browser, &next).await);
    }

    /// - Effect of `UserQuestionnaireItem.validationFormat`: Answers of another format are refused.
    async fn the_format_of_an_answer_is_enforced(world: World) {
        let home = SignInApp::new(&world).await;
        for (format, wrong, problem, right) in [
            ("Email", "ada@", "Enter an email address", "ada@example.com"),
            ("PhoneE164", "+49 30 123456", "Enter the number with its country code", "+4930123456"),
            ("None", "a\0b", "has invalid characters", "+49 30, ada@"),
            ("Regex", "sales", "does not have the required format", "Sales"),
        ] {
            let members = json!({ "validationFormat": format, "validationPattern": "^[A-Z]" });
            let item = create_item(&world, &home, &format!("of-{format}"), members).await;
            let (mut browser, page) = typed(&world, &home, &[]).await;
            assert!(is_refused(&mut browser, &page, &item, wrong, problem).await, "{format}");
            let next = answer(&mut browser, &page, &[(&item, right)]).await;
            assert!(completes(&mut browser, &next).await, "{format}");
        }
    }

    /// - Effect of `UserQuestionnaireItem.validationPattern`: Answers that do not match this pattern are refused.
    async fn the_pattern_of_an_answer_is_enforced(world: World) {
        let home = SignInApp::new(&world).await;
        let members = json!({ "validationFormat": "Regex", "validationPattern": "^[A-Z]{2}$" });
        let item = create_item(&world, &home, "code", members).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(is_refused(&mut browser, &page, &item, "ABC", "does not have the required format").await);
        change(&world, &format!("/UserQuestionnaireItem/{}", id(&item)), json!({ "validationPattern": "^[A-Z]{3}$" })).await;
        let next = answer(&mut browser, &page, &[(&item, "ABC")]).await;
        assert!(completes(&mut browser, &next).await);
    }

    /// - Effect of `UserQuestionnaireItem.tenantId`: People who sign in at this tenant are asked.
    async fn only_the_people_of_its_tenant_are_asked(world: World) {
        let home = SignInApp::new(&world).await;
        let subscription = first(&world, "/Subscription").await;
        let other = world.make("Tenant", json!({ "name": "Elsewhere", "subscriptionId": subscription["id"] })).await;
        create_item(&world, &home, "department", json!({ "tenantId": other["id"] })).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(completes(&mut browser, &page).await);
        create_item(&world, &home, "department", json!({})).await;
        let (_, page) = typed(&world, &home, &[]).await;
        assert!(is_question_page(&page), "{}", page.html);
    }

    /// Answers are stored together or not at all, and the input is shown again.
    async fn a_failed_write_stores_no_answer(world: World) {
        let home = SignInApp::new(&world).await;
        world.set_option("EmailMustBeUnique", "true").await;
        let bob = json!({ "loginName": "bob", "emailAddress": "bob@example.com" });
        world.admin.post(&world.path("/User"), bob).await.expect(201);
        let path = world.path(&format!("/User/{}", id(&home.user)));
        let token = ann(&world, &home).await["concurrencyToken"].clone();
        let without = json!({ "emailAddress": null, "concurrencyToken": token });
        let headers = [("content-type", "application/merge-patch+json")];
        world.admin.send(http::Method::PATCH, &path, &headers, without.to_string().into_bytes()).await.expect(202);
        let address = create_item(&world, &home, "emailAddress", json!({ "position": 1 })).await;
        let team = create_item(&world, &home, "team", json!({ "position": 2 })).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("type=\"email\"") && page.html.contains("autocomplete=\"email\""), "{}", page.html);
        let again = answer(&mut browser, &page, &[(&address, "Bob@example.com"), (&team, "Night & Day")]).await;
        let problem = "Your emailAddress?: This is in use by another account.";
        assert!(is_question_page(&again) && again.html.contains(problem), "{}", again.html);
        for typed in ["value=\"Bob@example.com\"", "value=\"Night &amp; Day\""] {
            assert!(again.html.contains(typed), "{typed}: {}", again.html);
        }
        assert_eq!(entries(&world, &home).await, []);
        let next = answer(&mut browser, &again, &[(&address, "ann@example.org"), (&team, "Night & Day")]).await;
        assert!(completes(&mut browser, &next).await);
        let now = ann(&world, &home).await;
        // nobody has proven access to this mailbox
        assert_eq!((&now["emailAddress"], &now["emailAddressConfirmed"]), (&json!("ann@example.org"), &json!(false)));
        assert_eq!(entries(&world, &home).await, [("team".to_owned(), "Night & Day".to_owned())]);
    }

    /// A person who sets an address can receive codes and links there.
    async fn a_session_alone_cannot_set_an_address(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        create_item(&world, &home, "phoneNumber", json!({})).await;
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert!(parameter(&silent, "code").is_some(), "{silent}");
        let (_, page) = typed(&world, &home, &[]).await;
        assert!(is_question_page(&page) && page.html.contains("type=\"tel\""), "{}", page.html);
        // if administrators create second factors, a password alone permits no credential that counts as one
        tenant_option(&world, &home, "SecondFactorEnrolment", "Administrator").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(completes(&mut browser, &page).await);
    }

    async fn a_read_only_store_asks_no_questions(world: World) {
        let home = SignInApp::new(&world).await;
        create_item(&world, &home, "department", json!({})).await;
        world.set_option("IsDatabaseReadOnlyMode", "true").await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(completes(&mut browser, &page).await);
    }

    /// An administrator of a tenant cannot lock administrators out of the platform.
    async fn required_questions_can_be_skipped_at_the_platform(world: World) {
        let home = console(&world).await;
        create_item(&world, &home, "department", json!({})).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(is_question_page(&page) && page.html.contains("Not now"), "{}", page.html);
        let next = browser.submit(&page, &[("choice", "later")]).await;
        assert!(completes(&mut browser, &next).await);
        let mut browser = Browser::new(&world);
        let page = browser.open("/console").await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(is_question_page(&page) && page.html.contains("Not now"), "{}", page.html);
    }

    async fn many_questions_are_asked_page_by_page(world: World) {
        let home = SignInApp::new(&world).await;
        let mut items = Vec::new();
        for number in 0..21 {
            items.push(create_item(&world, &home, &format!("key{number}"), json!({ "position": number })).await);
        }
        let (mut browser, page) = typed(&world, &home, &[]).await;
        assert!(page.html.contains("Your key19?") && !page.html.contains("Your key20?"), "{}", page.html);
        // the input is larger than a cookie
        let long = "x".repeat(700);
        let mut given: Vec<(&Value, &str)> = items.iter().take(20).map(|item| (item, long.as_str())).collect();
        given[0].1 = "";
        let again = answer(&mut browser, &page, &given).await;
        assert_eq!(again.html.matches(&format!("value=\"{long}\"")).count(), 19, "{}", again.html);
        given[0].1 = "short";
        let next = answer(&mut browser, &again, &given).await;
        assert!(is_question_page(&next) && next.html.contains("Your key20?") && !next.html.contains("Your key19?"), "{}", next.html);
        let next = answer(&mut browser, &next, &[(&items[20], "done")]).await;
        assert!(completes(&mut browser, &next).await);
        assert_eq!(entries(&world, &home).await.len(), 21);
    }

    async fn questions_that_changed_meanwhile_are_shown_once_more(world: World) {
        let home = SignInApp::new(&world).await;
        let team = create_item(&world, &home, "team", json!({})).await;
        let (mut browser, page) = typed(&world, &home, &[]).await;
        let crew = create_item(&world, &home, "crew", json!({})).await;
        let again = answer(&mut browser, &page, &[(&team, "Red")]).await;
        assert!(again.html.contains("The questions have changed") && again.html.contains("Your crew?"), "{}", again.html);
        assert!(again.html.contains("value=\"Red\""), "{}", again.html);
        assert_eq!(entries(&world, &home).await, []);
        let next = answer(&mut browser, &again, &[(&team, "Red"), (&crew, "Two")]).await;
        assert!(completes(&mut browser, &next).await);
        // a page that stayed open writes nothing once it is answered
        let late = answer(&mut browser, &again, &[(&team, "Blue"), (&crew, "Two")]).await;
        assert!(!is_question_page(&late), "{}", late.html);
        assert!(entries(&world, &home).await.contains(&("team".to_owned(), "Red".to_owned())));
    }

    async fn a_tenant_has_a_hundred_items_at_most(world: World) {
        let home = SignInApp::new(&world).await;
        let item = |number: i32| json!({ "tenantId": home.tenant, "key": format!("key{number}"), "label": "?" });
        let path = format!("{BASE}/UserQuestionnaireItem");
        let batch: Vec<Value> = (0..100).map(item).collect();
        world.admin.post(&format!("{path}/batch"), json!(batch)).await.expect(200);
        let response = world.admin.post(&path, item(100)).await.problem(400, "invalid-request");
        assert_eq!(pointers(&response), ["/tenantId"]);
        // existing ones can be changed
        let one = world.all("UserQuestionnaireItem").await[0].clone();
        change(&world, &format!("/UserQuestionnaireItem/{}", id(&one)), json!({ "label": "What?" })).await;
    }

    /// Answers are stored in users, where mail is sent to them and client apps read rights from them.
    async fn asking_questions_requires_administering_the_users(world: World) {
        let home = SignInApp::new(&world).await;
        let store = first(&world, "/IdpInstance?filter=name%20eq%20%22default%22").await;
        let (tenant, store): (uuid::Uuid, uuid::Uuid) =
            (home.tenant.parse().unwrap(), id(&store).parse().unwrap());
        let create_item_as = async |client: &chancery_testkit::Client, key: &str| {
            let item =
                json!({ "tenantId": home.tenant, "key": key, "label": "Your address?", "isRequired": true });
            client.post(&format!("{BASE}/UserQuestionnaireItem"), item).await
        };
        let alone = world.client("alone", &[("TenantAdmin", Some(tenant), None)]).await;
        let problem = create_item_as(&alone, "emailAddress").await.problem(403, "forbidden");
        assert_eq!(
            (&problem["role"], &problem["id"]),
            (&json!("UserStoreAdmin"), &json!(store.to_string())),
            "{problem}"
        );
        let both = world
            .client("both", &[("TenantAdmin", Some(tenant), None), ("UserStoreAdmin", None, Some(store))])
            .await;
        let item = create_item_as(&both, "emailAddress").await.is(201).json();
        // nobody can ask people with more rights
        let boss = world.user("boss").await;
        world.admin.post(&world.path("/User/synchronize"), json!(null)).await.expect(200);
        let all = world.all("ApplicationUser").await;
        let boss =
            all.as_array().unwrap().iter().find(|one| one["identities"][0]["subject"] == boss["id"]).unwrap();
        let role =
            json!({ "principalType": "PlatformUser", "principalId": boss["id"], "roleType": "SystemAdmin" });
        world.admin.post(&format!("{BASE}/RoleAssignment"), role).await.expect(201);
        assert_eq!(create_item_as(&both, "phoneNumber").await.problem(403, "forbidden")["role"], json!("SystemAdmin"));
        let path = format!("{BASE}/UserQuestionnaireItem/{}", id(&item));
        let body = json!({ "label": "Your private address?", "concurrencyToken": item["concurrencyToken"] });
        both.patch(&path, body).await.problem(403, "forbidden");
        create_item_as(&world.admin, "phoneNumber").await.expect(201);
    }

    /// Answers of external people are stored in platform users, which client apps of other tenants read.
    async fn asking_external_users_requires_administering_the_subscription(world: World) {
        let home = SignInApp::new(&world).await;
        let provider = crate::instance::create_instance(&world, "Partner", "OpenIdConnect").await;
        relate(&world, &format!("/IdpInstance/{}/tenants", id(&provider)), &[home.tenant.as_str()]).await;
        let store = first(&world, "/IdpInstance?filter=name%20eq%20%22default%22").await;
        let (tenant, store) = (home.tenant.parse().unwrap(), id(&store).parse().unwrap());
        let roles = [("TenantAdmin", Some(tenant), None), ("UserStoreAdmin", None, Some(store))];
        let item = json!({ "tenantId": home.tenant, "key": "department", "label": "Your department?" });
        let path = format!("{BASE}/UserQuestionnaireItem");
        let below = world.client("below", &roles).await;
        let problem = below.post(&path, item.clone()).await.problem(403, "forbidden");
        assert_eq!((&problem["role"], &problem["id"]), (&json!("SubscriptionAdmin"), &provider["id"]));
        let own = world.client("own", &[("SubscriptionAdmin", None, None)]).await;
        own.post(&path, item).await.expect(201);
    }

    async fn a_required_question_is_asked_before_many_optional_ones(world: World) {
        let home = SignInApp::new(&world).await;
        let (mut browser, _) = home.sign_in(&world).await;
        for number in 0..25 {
            create_item(&world, &home, &format!("hobby{number:02}"), json!({ "isRequired": false, "position": number }))
                .await;
        }
        let required = create_item(&world, &home, "department", json!({ "position": 100 })).await;
        let silent = browser.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("interaction_required"), "{silent}");
        let page = browser.open(&home.request(&[])).await;
        assert!(page.html.contains(&field(&required)), "{}", page.html);
    }
}

on_both_engines! {
    [allow_loopback]
    async fn answers_of_external_people_are_stored_in_platform_users(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let department = create_item(&world, &home, "department", json!({ "position": 1 })).await;
        let nickname = create_item(&world, &home, "nickname", json!({ "position": 2, "isRequired": false })).await;
        create_item(&world, &home, "emailAddress", json!({ "position": 3 })).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = external::sign_in_with(&mut browser, &page, "Partner", &provider).await;
        // the address from the provider is an answer
        assert!(is_question_page(&page) && !page.html.contains("Your emailAddress?"), "{}", page.html);
        let again = answer(&mut browser, &page, &[(&department, ""), (&nickname, "Countess")]).await;
        assert!(is_question_page(&again) && again.html.contains("value=\"Countess\""), "{}", again.html);
        let next = answer(&mut browser, &again, &[(&department, "Engines"), (&nickname, "Countess")]).await;
        let code = parameter(&browser.continue_to_app(&next).await, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let id_claims = claims(&tokens["id_token"]);
        assert_eq!((&id_claims["department"], &id_claims["nickname"]), (&json!("Engines"), &json!("Countess")), "{id_claims}");
        assert_eq!(claim_rules::userinfo(&world, &tokens).await["department"], "Engines");
        let person = external::people(&world, &instance).await[0].clone();
        let stored = json!([{ "key": "department", "value": "Engines" }, { "key": "nickname", "value": "Countess" }]);
        assert_eq!(person["userProfiles"], stored, "{person}");
        let entry = world.all("CustomAuditTrail?filter=area%20eq%20%22ApplicationUserProfile%22").await;
        assert_eq!((&entry[0]["action"], &entry[0]["user"]), (&json!("Added"), &person["id"]), "{entry}");
        // they are not asked again
        let (_, back) = external::sign_in(&world, &home, &provider, &[]).await;
        assert!(parameter(&back, "code").is_some(), "{back}");
        // nor is a person who skips optional questions
        create_item(&world, &home, "pet", json!({ "isRequired": false })).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = external::sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(is_question_page(&page), "{}", page.html);
        let next = browser.submit(&page, &[("choice", "later")]).await;
        assert!(completes(&mut browser, &next).await);
        let (_, back) = external::sign_in(&world, &home, &provider, &[]).await;
        assert!(parameter(&back, "code").is_some(), "{back}");
    }
}
