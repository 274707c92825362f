//! A sign-in by an external identity provider as a proof of an identity replacement.

use chancery_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{
    BASE,
    browser::Browser,
    claims,
    external::{come_by, connect, people, set_up, sign_in},
    parameter,
};
use crate::{
    id,
    provider_trial::{of_this_machine, stand_in::StandIn},
};

fn request(person: &Value, instance: &Value, subject: &str) -> Value {
    json!({
        "platformUserId": person, "replacementIdpInstanceId": instance["id"],
        "replacementUniqueUserId": subject, "reason": "Moves to the partner",
    })
}

on_both_engines! {
    [of_this_machine]
    async fn a_sign_in_proves_the_identities_of_an_open_replacement(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let (_, answer) = home.sign_in(&world).await;
        let told = home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.is(200).json();
        let ann = claims(&told["id_token"])["sub"].clone();
        let moved = world.admin.post(&format!("{BASE}/identity-replacements"), request(&ann, &instance, "ada")).await.is(201).json();
        let proven = async |replacement: &Value| {
            let found = world.admin.get(&format!("{BASE}/identity-replacements/{}", id(replacement))).await.is(200).json();
            (found["currentIdentityProvenOn"].is_string(), found["replacementIdentityProvenOn"].is_string())
        };
        assert_eq!(proven(&moved).await, (false, false));
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        let page = come_by(&mut browser, &page, "Partner", &provider).await;
        assert!(page.html.contains("You cannot sign in here"), "{}", page.html);
        assert_eq!(proven(&moved).await, (false, true));
        // nobody else has become the subject
        let found = people(&world, &instance).await;
        assert_eq!((found.len(), &found[0]["id"]), (1, &ann));
        // an identity that is to be replaced is proven likewise
        let other = StandIn::start().await;
        let elsewhere = connect(&world, &home, "Other", &other).await;
        world.admin.send(http::Method::POST, &format!("{BASE}/identity-replacements/{}/cancel", id(&moved)), &[], Vec::new()).await.expect(200);
        sign_in(&world, &home, &provider, &[]).await;
        let ada = people(&world, &instance).await[0]["id"].clone();
        assert_ne!(ada, ann);
        let moved = world.admin.post(&format!("{BASE}/identity-replacements"), request(&ada, &elsewhere, "ada-elsewhere")).await.is(201).json();
        sign_in(&world, &home, &provider, &[]).await;
        assert_eq!(proven(&moved).await, (true, false));
    }
}
