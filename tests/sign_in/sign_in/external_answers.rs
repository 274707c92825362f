//! Stored answers of external people to questionnaires.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, SignInApp,
    browser::{Browser, Page},
    claims, external, parameter,
};
use crate::{
    id, pointers,
    provider_trial::{allow_loopback, stub_provider::StubProvider},
};

/// Signs in at the provider; returns the page with the question.
async fn question_page(world: &World, home: &SignInApp, provider: &StubProvider) -> (Browser, Page) {
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    let page = external::sign_in_with(&mut browser, &page, "Partner", provider).await;
    assert!(page.address.contains("/signin/questionnaire"), "{}", page.html);
    (browser, page)
}

/// Submits the answer and completes the sign-in; returns the tokens.
async fn submit_answer(
    world: &World,
    home: &SignInApp,
    (mut browser, page): (Browser, Page),
    item: &Value,
    text: &str,
) -> Value {
    let next = browser.submit(&page, &[(&format!("item-{}", id(item)), text)]).await;
    let code =
        parameter(&browser.continue_to_app(&next).await, "code").unwrap_or_else(|| panic!("{}", next.html));
    home.redeem(world, &code, &[]).await.is(200).json()
}

on_both_engines! {
    [allow_loopback]
    /// - Effect of `ApplicationUserProfile.key`: The entry is the answer to questions with this key, and tokens contain it as the claim of
    ///   this name.
    /// - Effect of `ApplicationUserProfile.value`: Tokens contain this answer of a person of an external identity provider, and a question
    ///   with its key is not asked while it is not empty.
    async fn an_answer_is_corrected_and_deleted(world: World) {
        let (home, provider, instance) = external::set_up(&world).await;
        let item = json!({ "tenantId": home.tenant, "key": "department", "label": "Your department?" });
        let item = world.make("UserQuestionnaireItem", item).await;
        let question = question_page(&world, &home, &provider).await;
        let tokens = submit_answer(&world, &home, question, &item, "Engins").await;
        assert_eq!(claims(&tokens["id_token"])["department"], "Engins");
        let person = external::people(&world, &instance).await.remove(0);
        let all = format!("{BASE}/ApplicationUser/{}/ApplicationUserProfile", id(&person));
        let listed = world.admin.get(&all).await.is(200).json();
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["value"]), (1, &json!("Engins")));
        let one = format!("{all}/department");
        let entry = world.admin.get(&one).await.is(200).json();
        // an administrator of the subscription can correct it, and nobody else
        let subscription = &home.app["subscriptionId"];
        let other = world.other_subscription("far").await;
        let tenant = home.tenant.parse().unwrap();
        let callers = [
            (subscription, "TenantAdmin", Some(tenant), 403),
            (&other, "SubscriptionAdmin", None, 404),
            (subscription, "SubscriptionAdmin", None, 202),
        ];
        let body = json!({ "key": "department", "value": "Engines", "concurrencyToken": entry["concurrencyToken"] });
        for (subscription, role, tenant, status) in callers {
            let caller = world.client_in(subscription, &format!("{role} {status}"), &[(role, tenant, None)]).await;
            assert_eq!(caller.put(&one, body.clone()).await.status.as_u16(), status, "{role}");
        }
        let token = world.admin.get(&one).await.json()["concurrencyToken"].clone();
        let long = json!({ "key": "department", "value": "x".repeat(4_001), "concurrencyToken": token });
        assert_eq!(pointers(&world.admin.put(&one, long).await.problem(400, "invalid-request")), ["/value"]);
        let (_, answer) = external::sign_in(&world, &home, &provider, &[]).await;
        let tokens = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        assert_eq!(claims(&tokens["id_token"])["department"], "Engines");
        // an emptied answer is in no token, and the question is asked again
        let empty = json!({ "key": "department", "value": null, "concurrencyToken": token });
        world.admin.put(&one, empty).await.expect(202);
        let question = question_page(&world, &home, &provider).await;
        let tokens = submit_answer(&world, &home, question, &item, "Works").await;
        assert_eq!(claims(&tokens["id_token"])["department"], "Works");
        // a deleted answer is in no token, and the question is asked again
        world.admin.delete(&one).await.expect(204);
        assert_eq!(external::people(&world, &instance).await[0]["userProfiles"], json!([]));
        let question = question_page(&world, &home, &provider).await;
        let tokens = submit_answer(&world, &home, question, &item, "Analysis").await;
        assert_eq!(claims(&tokens["id_token"])["department"], "Analysis");
        let trail = world.all("CustomAuditTrail?filter=area%20eq%20%22ApplicationUserProfile%22").await;
        let actions: Vec<_> = trail.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(actions.iter().filter(|action| **action == "Deleted").count(), 1, "{actions:?}");
    }

    /// The longest answers of a page fit into its form.
    async fn the_longest_answers_of_a_page_fit(world: World) {
        let (home, provider, _) = external::set_up(&world).await;
        let mut items = Vec::new();
        for number in 0..21 {
            let item = json!({ "tenantId": home.tenant, "key": format!("k{number:02}"), "label": "Tell", "position": number });
            items.push(world.make("UserQuestionnaireItem", item).await);
        }
        for number in 21..23 {
            let item = json!({ "tenantId": home.tenant, "key": format!("k{number:02}"), "label": "Tell all", "position": number, "maxLength": 4000 });
            items.push(world.make("UserQuestionnaireItem", item).await);
        }
        let (mut browser, mut page) = question_page(&world, &home, &provider).await;
        for shown in [20, 2, 1] {
            let longest = |item: &Value| "\u{1f41c}".repeat(if item["maxLength"].is_null() { 256 } else { 4_000 });
            let answers = items.iter().map(|item| (format!("item-{}", id(item)), longest(item)));
            let here: Vec<(String, String)> = answers.filter(|(name, _)| page.html.contains(name.as_str())).collect();
            assert_eq!(here.len(), shown, "{}", page.html);
            let form: Vec<(&str, &str)> = here.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let next = browser.submit(&page, &form).await;
            assert_eq!(next.status, 200, "{}", next.html);
            page = next;
        }
        assert!(parameter(&browser.continue_to_app(&page).await, "code").is_some(), "{}", page.html);
    }
}
