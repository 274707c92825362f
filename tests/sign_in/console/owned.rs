//! Subresources, access passes, and operations on whole resources: every operation of the API is reachable.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{administrator, hidden, post};
use crate::id;

on_both_engines! {
    async fn subresources_are_added_changed_and_deleted(world: World) {
        let mut browser = administrator(&world).await;
        let group = world.admin.post(&world.path("/Group"), json!({ "name": "Engineering" })).await.is(201).json();
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace" })).await.is(201).json();
        for (owner, name, row) in [("Group", "GroupMetadata", &group), ("User", "UserProfile", &user)] {
            let parent = format!("/console/store/default/{owner}/{}", id(row));
            let path = format!("{parent}/owned/{name}");
            assert!(browser.open(&parent).await.html.contains(&format!("href=\"{path}\"")), "{path}");
            let page = browser.open(&path).await;
            let added = post(&world, &mut browser, &page, &format!("{path}/add"), &[("key", "cost/centre"), ("value", "4711")]).await;
            assert!(added.status == 200 && added.html.contains("cost/centre") && added.html.contains("4711"), "{}", added.html);
            let again = post(&world, &mut browser, &page, &format!("{path}/add"), &[("key", "cost/centre"), ("value", "1")]).await;
            assert!(again.status == 409 && again.html.contains("f-key-wrong"), "{}", again.html);
            let one = format!("{path}/cost%2Fcentre");
            let page = browser.open(&one).await;
            let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
            let fields = [("base", base.as_str()), ("concurrencyToken", token.as_str()), ("value", "4712")];
            let saved = post(&world, &mut browser, &page, &one, &fields).await;
            assert!(saved.status == 200 && saved.html.contains("4712") && saved.html.contains("Saved"), "{}", saved.html);
            let late = post(&world, &mut browser, &page, &one, &[("base", &base), ("concurrencyToken", &token), ("value", "4713")]).await;
            assert!(late.status == 409 && late.html.contains("4713") && late.html.contains("4712"), "{}", late.html);
            let (base, token, merge) = (hidden(&late, "base"), hidden(&late, "concurrencyToken"), hidden(&late, "merge"));
            let fields = [("base", base.as_str()), ("concurrencyToken", &token), ("merge", &merge), ("value", "now")];
            let merged = post(&world, &mut browser, &late, &one, &fields).await;
            assert!(merged.html.contains("4712") && merged.html.contains("Nothing was changed"), "{}", merged.html);
            let gone = post(&world, &mut browser, &saved, &format!("{path}/remove"), &[("selected", "cost/centre")]).await;
            assert!(gone.status == 200 && !gone.html.contains("4712"), "{}", gone.html);
        }
    }

    /// An access pass is issued from the page of its user, and shown once.
    async fn an_access_pass_is_shown_once(world: World) {
        let mut browser = administrator(&world).await;
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace" })).await.is(201).json();
        let path = "/console/store/default/TemporaryAccessPass";
        let page = browser.open(&format!("/console/store/default/User/{}", id(&user))).await;
        let new = format!("{path}/new?userId={}", id(&user));
        assert!(page.html.contains(&new), "{}", page.html);
        let page = browser.open(&new).await;
        let key = page.field("key");
        let created = post(&world, &mut browser, &page, &format!("{path}/new"), &[("userId", id(&user)), ("key", &key)]).await;
        let value = created.html.split("<ul class=\"plainly\">").nth(1).unwrap().split("<li>").nth(1).unwrap().split('<').next().unwrap().to_owned();
        let list = browser.open(path).await;
        assert!(value.len() >= 8 && list.status == 200 && !list.html.contains(&value), "{value} {}", list.html);
        assert_eq!(list.html.matches("scope=\"row\"").count(), 1, "{}", list.html);
        let redeem = json!({ "loginName": "grace", "value": value });
        world.admin.post(&world.path("/passkey-security/temporary-access-passes/redemption"), redeem).await.expect(200);
    }

    /// A contact is added and confirmed with its code; all users are synchronized at once.
    async fn further_operations_have_their_pages(world: World) {
        world.set_option("MailServerConfig", r#"{"Host": "localhost", "Port": 9}"#).await;
        world.set_option("EMailSenderAddress", "it@example.com").await;
        let mut browser = administrator(&world).await;
        let user = world.admin.post(&world.path("/User"), json!({ "loginName": "grace", "firstName": "Grace" })).await.is(201).json();
        let path = format!("/console/store/default/User/{}/owned/security-contact", id(&user));
        let page = browser.open(&path).await;
        let fields = [("kind", "Email"), ("value", "grace@example.com")];
        let added = post(&world, &mut browser, &page, &format!("{path}/add"), &fields).await;
        assert!(added.status == 200 && added.html.contains("grace@example.com"), "{}", added.html);
        let contacts = world.admin.get(&world.path(&format!("/User/{}/security-contact", id(&user)))).await.is(200).json();
        let one = format!("{path}/{}", id(&contacts[0]));
        assert!(added.html.contains(&one) && browser.open(&one).await.html.contains("VerifySecurityContact"), "{}", added.html);
        let verify = format!("{one}/VerifySecurityContact");
        let page = browser.open(&verify).await;
        let refused = post(&world, &mut browser, &page, &verify, &[("code", "000000"), ("key", &page.field("key"))]).await;
        assert!(refused.status == 400 || refused.status == 409, "{}: {}", refused.status, refused.html);

        let page = browser.open(&format!("/console/store/default/User/{}", id(&user))).await;
        assert!(page.html.contains("Without a password") && page.html.contains("Too few passkeys"), "{}", page.html);
        let passkeys = browser.open(&format!("/console/store/default/User/{}/owned/PasskeyCredential", id(&user))).await;
        assert_eq!(passkeys.status, 200, "{}", passkeys.html);
        let list = browser.open("/console/store/default/User").await;
        let path = "/console/store/default/User/act/SynchronizeAllUsers";
        assert!(list.html.contains(path), "{}", list.html);
        let page = browser.open(path).await;
        let done = post(&world, &mut browser, &page, path, &[("key", &page.field("key"))]).await;
        assert!(done.status == 200 && done.html.contains("created: 1"), "{}", done.html);
    }
}
