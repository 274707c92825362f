//! Concurrent submissions: of the same form, and of two forms with the same name.

use chancery_testkit::on_both_engines;
use futures_util::future::join_all;

use super::{administrator, post};

const NEW: &str = "/console/store/default/User/new";

on_both_engines! {
    /// A repeated submission creates no second row, and redirects to the first one.
    async fn concurrent_submissions_of_a_form_create_one_row(world: World) {
        let mut browser = administrator(&world).await;
        for round in 0..5 {
            let form = browser.open(NEW).await;
            let (key, login) = (form.field("key"), format!("twice{round}"));
            let fields = [("key", key.as_str()), ("loginName", login.as_str())];
            let mut clicks = [browser.clone(), browser.clone(), browser.clone(), browser.clone()];
            let sent = clicks.iter_mut().map(|browser| post(&world, browser, &form, NEW, &fields));
            let pages = join_all(sent).await;
            for page in &pages {
                assert!(page.status == 200 && page.address == pages[0].address, "{}: {}", page.address, page.html);
            }
            let created = world.admin.get(&world.path(&format!("/User?filter=loginName%20eq%20%22{login}%22"))).await.is(200).json();
            assert_eq!(created.as_array().unwrap().len(), 1);
        }
    }

    /// The second user sees the error at the field, whether the form is sent or validated while it is filled in.
    async fn a_taken_name_is_reported_at_its_field(world: World) {
        let mut browser = administrator(&world).await;
        for round in 0..5 {
            let login = format!("taken{round}");
            let forms = [browser.open(NEW).await, browser.open(NEW).await, browser.open(NEW).await, browser.open(NEW).await];
            let mut browsers = [browser.clone(), browser.clone(), browser.clone(), browser.clone()];
            let sent = browsers.iter_mut().zip(&forms).enumerate().map(async |(number, (browser, form))| {
                let key = form.field("key");
                let mut fields = vec![("key", key.as_str()), ("loginName", login.as_str())];
                if number % 2 == 1 {
                    fields.push(("check", "true"));
                }
                post(&world, browser, form, NEW, &fields).await
            });
            let pages = join_all(sent).await;
            let refused: Vec<_> = pages.iter().filter(|page| page.status != 200).collect();
            assert!(!refused.is_empty(), "two were sent");
            for page in refused {
                assert!(page.status == 409 && page.html.contains("href=\"#f-loginName\""), "{}: {}", page.status, page.html);
            }
        }
    }
}
