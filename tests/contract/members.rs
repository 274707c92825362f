//! Lists of linked resources.

use std::{collections::HashMap, sync::Arc};

use chancery_record::Value as Bound;
use chancery_resource::settings::{Options, UserStoreOption};
use chancery_resource::{Context, Lineage, Scope, Sql, StoreScope, list_statement};
use chancery_store::{Error, Mode};
use chancery_testkit::{Engine, World, on_both_engines};
use serde_json::{Value, json};

use crate::{each, encode, id};

/// Users in a group, and some that are not.
async fn members(world: &World) -> (Value, Vec<String>) {
    let users: Vec<Value> = (0..3000)
        .map(|number| json!({ "loginName": format!("u{number:05}"), "isUserActive": number % 3 == 0 }))
        .collect();
    let users = world.admin.post(&world.path("/User/batch"), json!(users)).await.is(200).json();
    let group = world.group("large").await;
    let ids: Vec<String> = each(&users, "id").into_iter().take(2000).map(str::to_owned).collect();
    let path = world.path(&format!("/Group/{}/users", id(&group)));
    world.admin.put(&path, json!({ "relatedIds": ids })).await.expect(202);
    (group, ids)
}

/// The plan of the statement by which a filtered list of the default store begins, line by line.
pub async fn plan(world: &World, operation: &str, filter: &str) -> Vec<String> {
    plan_from(world, operation, filter, (false, None)).await
}

/// The same of a reversed list, or of one that continues after a key.
pub async fn plan_from(
    world: &World,
    operation: &str,
    filter: &str,
    from: (bool, Option<Bound>),
) -> Vec<String> {
    let services = &world.app.context.services;
    let op = services.iter().flat_map(|service| service.all()).find(|op| op.name == operation).unwrap();
    let sql = list_statement(&server_context(world).await, op.shape, filter, from.0, from.1).unwrap();
    explain(world, sql).await
}

/// The server's own context in the default store.
pub async fn server_context(world: &World) -> Context {
    let options = Arc::new(Options::<UserStoreOption>::new(HashMap::new()));
    let stores = world.all("IdpInstance").await;
    let store = stores.as_array().unwrap().iter().find(|one| one["name"] == "default").unwrap();
    let id = id(store).parse().unwrap();
    let (name, lineage) = ("default".into(), Lineage::default());
    let scope = Scope::Store(StoreScope { number: 1, id, name, lineage, options, metadata: None });
    chancery::server_context(&world.app.context, scope)
}

/// The plan of a statement, line by line.
pub async fn explain(world: &World, sql: Sql) -> Vec<String> {
    let (explain, column) = match world.engine {
        Engine::Sqlite => ("EXPLAIN QUERY PLAN", 3),
        Engine::Postgres => ("EXPLAIN", 0),
    };
    let text = format!("{explain} {}", sql.text);
    let read = world.app.store.run("Explain", Mode::Long, None, move |tx| {
        let mut lines = Vec::new();
        tx.query(&text, &sql.parameters, |row| {
            lines.push(row.text(column)?.to_owned());
            Ok(())
        })?;
        Ok::<_, Error>(lines)
    });
    read.await.unwrap()
}

on_both_engines! {
    /// B9: `memberOfGroups.id eq` over a whole list answers the members in the order of their keys, with the other conditions
    /// of the filter.
    async fn the_members_of_a_group_are_listed_in_order(world: World) {
        let (group, mut ids) = members(&world).await;
        ids.sort_unstable();
        let list = async |filter: String, more: &str| {
            let path = world.path(&format!("/User?filter={}{more}", encode(&filter)));
            world.admin.get(&path).await.is(200).json()
        };
        let ours = format!("memberOfGroups.id eq \"{}\"", id(&group));
        assert_eq!(each(&list(ours.clone(), "").await, "id"), ids);
        let whole = list(ours.clone(), "&sortOrder=descending").await;
        assert_eq!(each(&whole, "id"), ids.iter().rev().collect::<Vec<_>>());
        assert_eq!(whole[0]["memberOfGroups"][0]["name"], "large");
        let active = list(format!("isUserActive eq true and ({ours} and loginName sw \"u\")"), "&includeTotal=true").await;
        assert_eq!(active.as_array().unwrap().len(), 667);
        assert!(active.as_array().unwrap().iter().all(|user| user["isUserActive"] == true));
        let page = list(ours.clone(), "&count=7").await;
        assert_eq!(each(&page, "id"), ids[..7]);
        assert_eq!(list(format!("not ({ours})"), "").await.as_array().unwrap().len(), 1000);
        assert_eq!(list("memberOfGroups.id eq \"0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f\"".into(), "").await, json!([]));
    }

    /// Pages of few members and of many are the same list, in either order, with other conditions.
    async fn members_are_paged(world: World) {
        let (few, mut ids) = members(&world).await;
        ids.sort_unstable();
        let more: Vec<Value> = (0..3_500).map(|number| json!({ "loginName": format!("v{number:05}") })).collect();
        let more = world.admin.post(&world.path("/User/batch"), json!(more)).await.is(200).json();
        let many = world.group("larger").await;
        let mut all: Vec<String> = each(&more, "id").into_iter().chain(ids.iter().map(String::as_str)).map(str::to_owned).collect();
        all.sort_unstable();
        world.admin.put(&world.path(&format!("/Group/{}/users", id(&many))), json!({ "relatedIds": all })).await.expect(202);
        for (group, ids) in [(&few, &ids), (&many, &all)] {
            for order in ["ascending", "descending"] {
                let filter = encode(&format!("memberOfGroups.id eq \"{}\" and loginName pr", id(group)));
                let mut path = world.path(&format!("/User?filter={filter}&count=900&sortOrder={order}"));
                let (mut ids_of_pages, mut pages) = (Vec::new(), 0);
                loop {
                    let answer = world.admin.get(&path).await.is(200);
                    let rows = answer.json();
                    assert_eq!(rows[0]["memberOfGroups"].as_array().unwrap().iter().filter(|one| one["id"] == group["id"]).count(), 1);
                    ids_of_pages.extend(each(&rows, "id").into_iter().map(str::to_owned));
                    pages += 1;
                    let Some(link) = answer.header("link") else { break };
                    path = link.split(['<', '>']).nth(1).unwrap().strip_prefix(&world.base).unwrap().to_owned();
                }
                if order == "descending" {
                    ids_of_pages.reverse();
                }
                assert!(ids_of_pages == *ids && pages == ids.len().div_ceil(900), "{order}: {pages} pages, {} found", ids_of_pages.len());
            }
        }
    }

    /// B9: its plan begins at the memberships on both engines, and walks no index of all users.
    async fn a_list_of_members_begins_at_the_memberships(world: World) {
        let (group, _) = members(&world).await;
        let filter = format!("memberOfGroups.id eq \"{}\" and isUserActive eq true", id(&group));
        let plan = plan(&world, "GetUsers", &filter).await;
        let position = |what: &str| plan.iter().position(|line| line.contains(what));
        let whole = plan.join("\n");
        assert!(position("user_account__store__").is_none(), "{whole}");
        match world.engine {
            Engine::Sqlite => {
                let (links, users) = (position("SEARCH m ").unwrap(), position("SEARCH t USING INTEGER PRIMARY KEY").unwrap());
                assert!(links < users, "{whole}");
                assert!(position("SCAN t").is_none(), "{whole}");
            }
            Engine::Postgres => {
                assert!(position("group_member").is_some() && position("Sort").is_some(), "{whole}");
                assert!(position("SubPlan").is_none(), "{whole}");
            }
        }
    }
}
