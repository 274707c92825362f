//! The page with the deliveries of an event subscription.

use chancery_testkit::{Receiver, on_both_engines};
use serde_json::json;

use super::{administrator, post};
use crate::{
    id,
    webhook::{subscribed, to_this_machine, until},
};

on_both_engines! {
    [to_this_machine]
    /// A failed delivery shows the reason, and is sent again by its button.
    async fn a_failed_delivery_is_shown_and_sent_again(world: World) {
        let mut receiver = Receiver::start().await;
        let mut browser = administrator(&world).await;
        let (path, row) = subscribed(&world, &receiver, json!({ "types": ["platform.userstore.user.created"] })).await;
        receiver.answer("500 No");
        world.user("eve").await;
        until(&world, &path, |row| row["waiting"] == 1).await;
        let item = format!("/console/store/default/EventSubscription/{}", id(&row));
        let here = format!("{item}/deliveries");
        let shown = browser.open(&item).await;
        assert!(shown.html.contains(&here) && shown.html.contains("1 waiting for a retry"), "{}", shown.html);
        let page = browser.open(&here).await;
        for expected in ["platform.userstore.user.created", "the receiver answered 500", "attempt 1", "platform.event.test"] {
            assert!(page.html.contains(expected), "{expected}: {}", page.html);
        }
        // the server's own notifications cannot be sent again
        assert_eq!(page.html.matches("Send again").count(), 1, "{}", page.html);
        let event = page.html.split("name=\"event\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        world.admin.post(&format!("{path}/skip"), json!({ "after": crate::feed_from_now(&world.admin, &world.path("/Event")).await["next"] })).await.expect(200);
        receiver.answer("200 OK");
        let next = post(&world, &mut browser, &page, &here, &[("event", &event)]).await;
        assert!(next.status == 200 && next.html.contains("The event is sent again"), "{}", next.html);
        let got = receiver.until(|got| got.len() >= 3).await;
        assert_eq!(got.last().unwrap().header("webhook-id"), event);
    }
}
