//! Column headings sort if an index supports the order, and are no links otherwise.

use chancery_store::{Error, Mode};
use chancery_testkit::{Engine, World, on_both_engines};
use serde_json::json;

use super::{administrator, pattern::lists};

/// The fields that the column headings of a list sort by.
fn heads(html: &str) -> Vec<&str> {
    let head = html.split("<thead>").nth(1).unwrap_or_default().split("</thead>").next().unwrap();
    head.split("?sort=").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// The indexes of the database, each as the table with its columns.
async fn indexes(world: &World) -> Vec<String> {
    let text = match world.engine {
        Engine::Sqlite => "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL",
        Engine::Postgres => "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    };
    let read = world.app.store.run("Indexes", Mode::Long, None, move |tx| {
        let mut all = Vec::new();
        tx.query(text, &[], |row| {
            all.push(row.text(0)?.replace("public.", "").replace("USING btree ", ""));
            Ok(())
        })?;
        Ok::<_, Error>(all)
    });
    read.await.unwrap()
}

on_both_engines! {
    async fn column_headings_sort_by_indexed_fields_only(world: World) {
        let mut browser = administrator(&world).await;
        crate::sign_in::create_sign_in_data(&world).await;
        let indexes = indexes(&world).await;
        let mut seen = 0;
        for path in lists() {
            let name = path.rsplit('/').next().unwrap();
            for wire in heads(&browser.open(&path).await.html) {
                let services = [&chancery_userstore::SERVICE, &chancery_management::SERVICE];
                let is_it = |path: &str| path.trim_start_matches("/administration").trim_matches('/') == name;
                let shape = services.iter().flat_map(|service| service.all()).find(|op| is_it(op.path)).unwrap().shape;
                let field = shape.fields.iter().find(|field| field.wire() == wire).unwrap();
                let column = if field.access.folded { format!("{}_key", field.column) } else { field.column.to_owned() };
                let is_served = indexes.iter().any(|index| {
                    let (_, rest) = index.split_once(" ON ").unwrap();
                    let columns = rest.strip_prefix(shape.table).and_then(|rest| rest.trim().strip_prefix('('));
                    let first = columns.map(|columns| columns.trim_start_matches("store, "));
                    first.is_some_and(|first| first.split([',', ')']).next() == Some(column.as_str()))
                });
                assert!(is_served, "{path} sorts by {wire}, and no index of {} begins with {column}", shape.table);
                assert_eq!(browser.open(&format!("{path}?sort={wire}")).await.status, 200);
                seen += 1;
            }
        }
        assert!(seen >= 5, "{seen}");
    }

    async fn a_column_heading_sorts_in_both_directions(world: World) {
        let mut browser = administrator(&world).await;
        for (login, last) in [("one", "Zuse"), ("two", "Abel"), ("three", "Mirzakhani")] {
            world.admin.post(&world.path("/User"), json!({ "loginName": login, "lastName": last })).await.expect(201);
        }
        let path = "/console/store/default/User";
        let up = browser.open(&format!("{path}?sort=lastName")).await.html;
        let position = |html: &str, name: &str| html.find(&format!(">{name}</a>")).unwrap_or_else(|| panic!("{html}"));
        assert!(position(&up, "Abel") < position(&up, "Mirzakhani") && position(&up, "Mirzakhani") < position(&up, "Zuse"));
        assert!(up.contains("aria-sort=\"ascending\"") && heads(&up).contains(&"-lastName"), "{up}");
        let down = browser.open(&format!("{path}?sort=-lastName")).await.html;
        assert!(position(&down, "Zuse") < position(&down, "Mirzakhani") && position(&down, "Mirzakhani") < position(&down, "Abel"));
        assert!(down.contains("aria-sort=\"descending\""), "{down}");
        // columns without an index are not sortable, and searched or filtered lists neither
        for query in ["?sort=nickname", "?q=a&sort=lastName", "?view=inactive&sort=lastName"] {
            let page = browser.open(&format!("{path}{query}")).await;
            assert!(page.status == 200 && !page.html.contains("aria-sort"), "{query}: {}", page.html);
        }
        assert!(heads(&browser.open(&format!("{path}?q=a")).await.html).is_empty());
    }
}
