//! Groups of people of an external identity provider, which a directory provisions.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{
    SignInApp,
    browser::{Browser, Page},
    change, claims,
    external::{people, set_up, sign_in_with},
    parameter, relate,
};
use crate::{
    id,
    provider_trial::{
        allow_loopback,
        stub_provider::{Behaviour, StubProvider},
    },
    scim::directory_of,
};

/// Signs in with this subject at the provider; returns the page after the callback.
async fn sign_in_as(
    world: &World,
    home: &SignInApp,
    provider: &StubProvider,
    subject: &str,
) -> (Browser, Page) {
    let provider_claims = json!({ "sub": subject });
    provider.behave(Behaviour {
        claims: provider_claims.clone(),
        user_info: provider_claims,
        ..Behaviour::default()
    });
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[])).await;
    let page = sign_in_with(&mut browser, &page, "Partner", provider).await;
    (browser, page)
}

/// Outcome, reason and person of the sign-in records of the instance, oldest first.
async fn records(world: &World, instance: &Value) -> Vec<(Value, Value, Value)> {
    let all = world.all("SignInRecord?sortBy=id").await;
    let theirs = all.as_array().unwrap().iter().filter(|one| one["idpInstanceId"] == instance["id"]);
    theirs.map(|one| (one["outcome"].clone(), one["reason"].clone(), one["platformUserId"].clone())).collect()
}

on_both_engines! {
    [allow_loopback]
    async fn a_restricted_app_admits_members_of_a_provisioned_group(world: World) {
        let (home, provider, instance) = set_up(&world).await;
        let (directory, base) = directory_of(&world, &instance).await;
        let body = json!({ "userName": "ada@corp.example", "externalId": "ada" });
        let ada = directory.post(&format!("{base}/Users"), body).await.is(201).json();
        let body = json!({ "displayName": "Staff", "members": [{ "value": ada["id"] }] });
        let group = directory.post(&format!("{base}/Groups"), body).await.is(201).json();
        let app = format!("/ClientApp/{}", id(&home.app));
        // a person whom no directory provisioned
        let (mut browser, page) = sign_in_as(&world, &home, &provider, "bob").await;
        browser.continue_to_app(&page).await;
        let bob = people(&world, &instance).await.into_iter().find(|one| one["id"] != ada["id"]).unwrap();
        change(&world, &app, json!({ "isRestricted": true, "includeGroupsClaims": true })).await;
        relate(&world, &format!("{app}/authorizedgroups"), &[id(&group)]).await;

        let (mut member, page) = sign_in_as(&world, &home, &provider, "ada").await;
        let code = parameter(&member.continue_to_app(&page).await, "code").unwrap();
        let tokens = home.redeem(&world, &code, &[]).await.is(200).json();
        let id_claims = claims(&tokens["id_token"]);
        assert_eq!((&id_claims["sub"], &id_claims["groups"]), (&ada["id"], &json!(["Staff"])));
        for (subject, left) in [("bob", Some(&bob)), ("carl", None)] {
            let (_, page) = sign_in_as(&world, &home, &provider, subject).await;
            assert!(page.left.is_none() && page.answer.header("refresh").is_none(), "{subject}: {}", page.html);
            assert!(page.html.contains("You cannot sign in"), "{subject}: {}", page.html);
            let entries = records(&world, &instance).await;
            let refused: Vec<_> = entries.iter().filter(|(outcome, ..)| outcome == "Refused").collect();
            // an unknown person leaves no record
            assert_eq!(refused, [&(json!("Refused"), json!("NotAdmitted"), left.unwrap_or(&bob)["id"].clone())]);
        }
        assert_eq!(people(&world, &instance).await.len(), 2, "a stranger becomes no platform user");
        let signed_in = |person: &Value| (json!("SignedIn"), Value::Null, person["id"].clone());
        let entries = records(&world, &instance).await;
        let successful: Vec<_> = entries.iter().filter(|(outcome, ..)| outcome == "SignedIn").cloned().collect();
        assert_eq!(successful, [signed_in(&bob), signed_in(&ada)]);

        // removal from the group also invalidates issued tokens at once
        let bearer = world.anonymous.with_token(tokens["access_token"].as_str().unwrap());
        bearer.get("/connect/userinfo").await.expect(200);
        let body = json!({ "displayName": "Staff", "members": [] });
        directory.put(&format!("{base}/Groups/{}", id(&group)), body).await.expect(200);
        bearer.get("/connect/userinfo").await.expect(401);
        let silent = member.open(&home.request(&[("prompt", "none")])).await.left.unwrap();
        assert_eq!(parameter(&silent, "error").as_deref(), Some("access_denied"));
    }
}
