//! Deleted users stay in quarantine, where they are found, restored and erased.

use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{administrator, post};
use crate::id;

on_both_engines! {
    async fn a_deleted_user_is_found_and_restored(world: World) {
        let mut browser = administrator(&world).await;
        let body = json!({ "loginName": "grace", "firstName": "Grace", "lastName": "Hopper" });
        let grace = world.admin.post(&world.path("/User"), body).await.is(201).json();
        let list = "/console/store/default/User";
        let path = format!("{list}/{}", id(&grace));
        let page = browser.open(&path).await;
        assert!(!page.html.contains("RestoreUserDeletionQuarantine"), "{}", page.html);
        world.admin.delete(&world.path(&format!("/User/{}", id(&grace)))).await.expect(204);
        let all = browser.open(list).await;
        assert!(!all.html.contains("Grace Hopper") && all.html.contains("?view=deleted"), "{}", all.html);
        let view = browser.open(&format!("{list}?view=deleted")).await;
        assert!(view.html.contains("Grace Hopper") && view.html.contains(&path) && view.html.contains(">Deleted</span>") && !view.html.contains("ada@example.com"), "{}", view.html);
        let page = browser.open(&path).await;
        assert!(page.status == 200 && page.html.contains("It is in quarantine") && !page.html.contains("name=\"firstName\""), "{}", page.html);
        let restore = format!("{path}/RestoreUserDeletionQuarantine");
        let confirmation = browser.open(&restore).await;
        let key = confirmation.field("key");
        let back = post(&world, &mut browser, &confirmation, &restore, &[("key", &key)]).await;
        assert!(back.status == 200 && back.html.contains("name=\"firstName\""), "{}", back.html);
    }

    /// Erasing a quarantined user requires typing the name, too.
    async fn a_deleted_user_is_erased(world: World) {
        let mut browser = administrator(&world).await;
        let body = json!({ "loginName": "grace", "firstName": "Grace", "lastName": "Hopper" });
        let grace = world.admin.post(&world.path("/User"), body).await.is(201).json();
        world.admin.delete(&world.path(&format!("/User/{}", id(&grace)))).await.expect(204);
        let path = format!("/console/store/default/User/{}/EraseUser", id(&grace));
        let confirmation = browser.open(&path).await;
        assert!(confirmation.status == 200 && confirmation.html.contains("Grace Hopper"), "{}", confirmation.html);
        let key = confirmation.field("key");
        let wrong = post(&world, &mut browser, &confirmation, &path, &[("key", &key), ("typed", "Ada")]).await;
        assert!(wrong.html.contains("does not match"), "{}", wrong.html);
        let gone = post(&world, &mut browser, &wrong, &path, &[("key", &key), ("typed", "Grace Hopper")]).await;
        assert_eq!(gone.status, 200, "{}", gone.html);
        let view = browser.open("/console/store/default/User?view=deleted").await;
        assert!(!view.html.contains("Grace"), "{}", view.html);
        assert_eq!(browser.open(&format!("/console/store/default/User/{}", id(&grace))).await.status, 404);
    }
}
