//! Size budgets of pages and their assets, compressed as over the wire.

use std::collections::BTreeMap;

use chancery_testkit::on_both_engines;
use http::Method;

use super::administrator;

/// The files that a page loads.
fn files(html: &str) -> Vec<String> {
    let all = html.split('"').filter(|text| text.starts_with("/console/asset/"));
    let mut files: Vec<String> = all.map(|text| text.split('#').next().unwrap().to_owned()).collect();
    files.sort();
    files.dedup();
    files
}

on_both_engines! {
    async fn pages_and_their_assets_stay_within_size_budgets(world: World) {
        let mut browser = administrator(&world).await;
        let gzip = [("accept-encoding", "gzip")];
        let page = browser.open("/console/store/default/User").await;
        let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
        let mut loaded = files(&page.html);
        let entries = browser.open("/console/store/default/CustomAuditTrail").await;
        let entry = entries.html.split("scope=\"row\"").nth(1).unwrap().split("href=\"").nth(1).unwrap().split('"').next().unwrap();
        let proof = files(&browser.open(entry).await.html).into_iter().find(|file| file.contains("/proof-")).unwrap();
        let first = loaded.clone();
        loaded.push(proof);
        for path in ["/console/CustomView/try", "/console/store/default/User/import"] {
            let islands = files(&browser.open(path).await.html).into_iter().filter(|file| file.contains(".js") && !first.contains(file));
            loaded.extend(islands);
        }
        for file in &loaded {
            let answer = world.anonymous.send(Method::GET, file, &gzip, Vec::new()).await;
            assert_eq!(answer.status, 200, "{file}");
            let kind = file.rsplit('/').next().unwrap();
            let name = format!("{}.{}", kind.split('-').next().unwrap(), kind.rsplit('.').next().unwrap());
            sizes.insert(name, answer.bytes.len());
        }
        let islands = ["proof.js", "editor.js", "import.js"];
        let bounds = [("console.css", 10 << 10), ("console.js", 6 << 10)].into_iter().chain(islands.map(|island| (island, 4 << 10)));
        for (file, most) in bounds {
            assert!(sizes[file] <= most, "{file}: {} of {most} bytes", sizes[file]);
        }
        let answer = browser.open_with("/console/store/default/User", &gzip).await;
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        let view: usize = sizes.iter().filter(|(name, _)| !islands.contains(&name.as_str())).map(|(_, size)| size).sum::<usize>() + answer.bytes.len();
        let fonts: usize = sizes.iter().filter(|(name, _)| name.ends_with("woff2")).map(|(_, size)| size).sum();
        assert!(first.len() >= 4 && answer.bytes.len() <= 15 << 10, "a page has {} bytes", answer.bytes.len());
        assert!(view <= 90 << 10 && view - fonts <= 40 << 10, "{view} bytes, {fonts} of them fonts: {sizes:?}");
    }
}
