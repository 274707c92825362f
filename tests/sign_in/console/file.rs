//! File fields: an empty one leaves the stored file unchanged.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{BASE, administrator, hidden, post};

on_both_engines! {
    async fn a_file_is_uploaded_by_a_form_and_stays_stored(world: World) {
        let mut browser = administrator(&world).await;
        let style = BASE64_STANDARD.encode("a { color: red }");
        let form = browser.open("/console/CustomAsset/new").await;
        assert!(form.html.contains("data-base64") && form.html.contains("<textarea class=\"code\" id=\"f-data\""), "{}", form.html);
        // a pasted file contains line breaks
        let pasted = format!("{}\r\n{}\r\n", &style[..8], &style[8..]);
        let fields = [("location", "/assets/global/a.css"), ("mimetype", "text/css"), ("data", pasted.as_str())];
        let created = post(&world, &mut browser, &form, "/console/CustomAsset/new", &fields).await;
        let read = async || world.admin.get(&format!("{BASE}/CustomAsset")).await.is(200).json()[0].clone();
        assert!(created.status == 200 && read().await["data"] == json!(style), "{}: {}", created.status, created.html);
        let path = created.address.split('?').next().unwrap().to_owned();
        let page = browser.open(&path).await;
        assert!(!page.html.contains(&style), "a file is not told again");
        let (base, token) = (hidden(&page, "base"), hidden(&page, "concurrencyToken"));
        let unchanged = [("base", base.as_str()), ("concurrencyToken", token.as_str()), ("mimetype", "text/css"), ("data", "")];
        let saved = post(&world, &mut browser, &page, &path, &unchanged).await;
        assert!(saved.html.contains("Nothing was changed") && read().await["data"] == json!(style), "{}", saved.html);
        let other = BASE64_STANDARD.encode("a { color: blue }");
        let changed = [("base", base.as_str()), ("concurrencyToken", token.as_str()), ("mimetype", "text/css"), ("data", other.as_str())];
        let saved = post(&world, &mut browser, &page, &path, &changed).await;
        assert!(saved.status == 200 && read().await["data"] == json!(other), "{}: {}", saved.status, saved.html);
        let wrong = browser.open(&path).await;
        let (base, token) = (hidden(&wrong, "base"), hidden(&wrong, "concurrencyToken"));
        let refused = [("base", base.as_str()), ("concurrencyToken", token.as_str()), ("data", "no base64!")];
        let refused = post(&world, &mut browser, &wrong, &path, &refused).await;
        assert!(refused.status == 400 && refused.html.contains("f-data-wrong"), "{}: {}", refused.status, refused.html);
    }
}
