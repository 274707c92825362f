//! A sign-in at an external identity provider as a proof of an identity replacement.

use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{
    BASE,
    browser::Browser,
    claims,
    external::{connect, people, set_up, sign_in, sign_in_with},
    parameter,
};
use crate::{
    id,
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
};

fn request(person: &Value, instance: &Value, subject: &str) -> Value {
    json!({
        "platformUserId": person, "replacementIdpInstanceId": instance["id"],
        "replacementUniqueUserId": subject, "reason": "Moves to the partner",
    })
}

on_both_engines! {
    [allow_loopback]
    async fn a_sign_in_proves_the_identities_of_an_open_replacement(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let issued = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let ann = claims(&issued["id_token"])["sub"].clone();
        let moved = world.admin.post(&format!("{BASE}/identity-replacements"), request(&ann, &instance, "ada")).await.is(201).json();
        let proven = async |replacement: &Value| {
            let stored = world.admin.get(&format!("{BASE}/identity-replacements/{}", id(replacement))).await.is(200).json();
            (stored["currentIdentityProvenOn"].is_string(), stored["replacementIdentityProvenOn"].is_string())
        };
        assert_eq!(proven(&moved).await, (false, false));
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
        assert_eq!(proven(&moved).await, (false, true));
        // nobody else has this subject now
        let users = people(&world, &instance).await;
        assert_eq!((users.len(), &users[0]["id"]), (1, &ann));
        // an identity that is to be replaced is proven likewise
        let other = StubProvider::start().await;
        let other_instance = connect(&world, &home, "Other", &other).await;
        world.admin.send(http::Method::POST, &format!("{BASE}/identity-replacements/{}/cancel", id(&moved)), &[], Vec::new()).await.expect(200);
        sign_in(&world, &home, &provider, &[]).await;
        let ada = people(&world, &instance).await[0]["id"].clone();
        assert_ne!(ada, ann);
        let body = request(&ada, &other_instance, "ada-elsewhere");
        let moved = world.admin.post(&format!("{BASE}/identity-replacements"), body).await.is(201).json();
        sign_in(&world, &home, &provider, &[]).await;
        assert_eq!(proven(&moved).await, (true, false));
    }

    /// A person who is to get this identity, or who has it in addition to that of another instance, is not changed by the provider's
    /// claims. An executed replacement moves the person to the instance, whose claims count from then on.
    async fn claims_change_only_people_of_the_instance(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let issued = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let ann = claims(&issued["id_token"])["sub"].clone();
        let provider_claims = json!({ "email": "mallory@example.com", "given_name": "Mallory" });
        provider.behave(Behaviour { claims: provider_claims.clone(), user_info: provider_claims, ..Behaviour::default() });
        let person = async || {
            let all = people(&world, &instance).await;
            assert_eq!((all.len(), &all[0]["id"]), (1, &ann));
            (all[0]["emailAddress"].clone(), all[0]["firstName"].clone())
        };
        let unchanged = (json!("ann@example.com"), json!("Ann"));
        let all = format!("{BASE}/identity-replacements");
        let moved = world.admin.post(&all, request(&ann, &instance, "ada")).await.is(201).json();
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        sign_in_with(&mut browser, &page, "Partner", &provider).await;
        assert_eq!(person().await, unchanged);
        let approver = world.client("approver", &[("SystemAdmin", None, None)]).await;
        world.sql(vec![("DELETE FROM client_app_controller", vec![])]).await;
        approver.post(&format!("{all}/{}/approvals", id(&moved)), json!(null)).await.expect(200);
        world.admin.post(&format!("{all}/{}/execute", id(&moved)), json!(null)).await.expect(200);
        // as if the person still came from the store
        let to_instance = "UPDATE application_user SET idp_instance_id = (SELECT id FROM idp_instance WHERE name = 'Partner')";
        world.sql(vec![("UPDATE application_user SET idp_instance_id = (SELECT id FROM idp_instance WHERE name = 'default')", vec![])]).await;
        sign_in(&world, &home, &provider, &[]).await;
        assert_eq!(person().await, unchanged);
        world.sql(vec![(to_instance, vec![])]).await;
        sign_in(&world, &home, &provider, &[]).await;
        assert_eq!(person().await, (json!("mallory@example.com"), json!("Mallory")));
    }
}
