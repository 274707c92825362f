//! Nested groups: members by page and by name, the tree, and the reason of a refused cycle.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{administrator, many::confirm, post};
use crate::id;

fn path(group: &Value, rest: &str) -> String {
    format!("/console/store/default/Group/{}{rest}", id(group))
}

/// Adds groups to a group.
async fn nest(world: &World, outer: &Value, inner: &[&Value]) {
    let body = json!({ "relatedIds": inner.iter().map(|group| id(group)).collect::<Vec<_>>() });
    world.admin.post(&world.path(&format!("/Group/{}/membergroups", id(outer))), body).await.expect(202);
}

/// Creates users with numbered names in a group.
async fn users_in_group(world: &World, group: &Value, count: usize) {
    let bodies: Vec<Value> =
        (0..count).map(|number| json!({ "loginName": format!("crew{number:04}") })).collect();
    let created = world.admin.post(&world.path("/User/batch"), json!(bodies)).await.is(200).json();
    let ids: Vec<&str> = created.as_array().unwrap().iter().map(id).collect();
    world
        .admin
        .post(&world.path(&format!("/Group/{}/users", id(group))), json!({ "relatedIds": ids }))
        .await
        .expect(202);
}

on_both_engines! {
    /// The page of a group shows some members, and the page of its members is paged; none reads all of them.
    async fn group_members_are_paged(world: World) {
        let mut browser = administrator(&world).await;
        let group = world.group("Crew").await;
        users_in_group(&world, &group, 130).await;
        let page = browser.open(&path(&group, "")).await;
        assert!(page.html.contains("crew0000") && !page.html.contains("crew0020"), "{}", page.html);
        let page = browser.open(&path(&group, "/relation/memberUsers")).await;
        assert_eq!(page.html.matches("name=\"selected\"").count(), 100);
        let next = page.html.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        let rest = browser.open(&path(&group, &format!("/relation/memberUsers{next}"))).await;
        assert_eq!(rest.html.matches("name=\"selected\"").count(), 30);
        let users = browser.open(&format!("/console/store/default/User?of=memberOfGroups:{}", id(&group))).await;
        assert!(users.html.contains("crew0049") && users.html.contains("Member of: Crew") && !users.html.contains(">Ada Lovelace</a>"), "{}", users.html);
        let of = format!("memberOfGroups:{}", id(&group));
        let fields = [("act", "take-out"), ("all", "true"), ("of", of.as_str())];
        let response = post(&world, &mut browser, &users, "/console/store/default/User/batch", &fields).await;
        assert!(response.html.contains("130 to be changed") && response.html.contains("Group: Crew"), "{}", response.html);
        let missing = browser.open("/console/store/default/Group/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f").await;
        assert_eq!(missing.status, 404);
    }

    async fn the_group_tree_is_expanded_step_by_step(world: World) {
        let mut browser = administrator(&world).await;
        let [all, makers, coders, parsers] =
            [world.group("All").await, world.group("Makers").await, world.group("Coders").await, world.group("Parsers").await];
        nest(&world, &all, &[&makers]).await;
        nest(&world, &makers, &[&coders]).await;
        nest(&world, &coders, &[&parsers]).await;
        let page = browser.open(&path(&makers, "/tree")).await;
        for name in ["All", "Coders"] {
            assert!(page.html.contains(&format!(">{name}</a>")), "{name}: {}", page.html);
        }
        assert!(!page.html.contains("Parsers"), "{}", page.html);
        let rest = page.html.split("id=\"down-0\"><a class=\"button plain small\" href=\"").nth(1).unwrap();
        let toggle = rest.split('"').next().unwrap().replace("&amp;", "&");
        let opened = browser.open(toggle.split('#').next().unwrap()).await;
        assert!(opened.html.contains(">Parsers</a>") && opened.html.contains(">All</a>"), "{}", opened.html);
        let empty = browser.open(&path(&makers, &format!("/tree?down={}.{}", id(&coders), id(&parsers)))).await;
        assert!(empty.html.contains("None"), "{}", empty.html);
    }

    /// A cycle is refused with its path, from either side.
    async fn a_membership_cycle_is_reported_with_its_path(world: World) {
        let mut browser = administrator(&world).await;
        let [all, makers, coders] = [world.group("All").await, world.group("Makers").await, world.group("Coders").await];
        nest(&world, &all, &[&makers]).await;
        nest(&world, &makers, &[&coders]).await;
        for (group, relation, other) in [(&coders, "memberGroups", &all), (&all, "parentGroups", &coders)] {
            let own = path(group, &format!("/relation/{relation}"));
            let page = browser.open(&own).await;
            let response = post(&world, &mut browser, &page, &format!("{own}/add"), &[("id", id(other))]).await;
            assert_eq!(response.status, 409, "{}", response.html);
            for step in ["Coders is in Makers.", "Makers is in All."] {
                assert!(response.html.contains(step), "{step}: {}", response.html);
            }
        }
        let own = path(&all, "/relation/memberGroups");
        let page = browser.open(&own).await;
        let response = post(&world, &mut browser, &page, &format!("{own}/add"), &[("id", id(&all))]).await;
        assert!(response.status == 409 && response.html.contains("cannot be a member of itself"), "{}", response.html);
    }

    /// Names are reported as new, already members, unknown or duplicate before anybody is added.
    async fn group_members_are_added_by_name(world: World) {
        let mut browser = administrator(&world).await;
        let group = world.group("Crew").await;
        for (login, mail) in [("grace", "grace@example.com"), ("alan", "shared@example.com"), ("emmy", "shared@example.com"), ("mary", "mary@example.com")] {
            world.admin.post(&world.path("/User"), json!({ "loginName": login, "emailAddress": mail })).await.expect(201);
        }
        users_in_group(&world, &group, 1).await;
        let own = path(&group, "/members");
        let page = browser.open(&path(&group, "")).await;
        assert!(page.html.contains(&own), "{}", page.html);
        let names = "GRACE\nMary <mary@example.com>\ngrace@example.com\r\nnobody\n\nshared@example.com\ncrew0000\n";
        let response = post(&world, &mut browser, &page, &own, &[("names", names)]).await;
        for fact in ["2 to be added: grace, mary", "1 members already: crew0000", "1 unknown: nobody", "1 match several people: shared@example.com", "1 listed twice: grace@example.com"] {
            assert!(response.html.contains(fact), "{fact}: {}", response.html);
        }
        let added = confirm(&world, &mut browser, &response, "/console/store/default/User/batch").await;
        assert!(added.html.contains("grace") && added.html.contains("Undo"), "the members are shown: {}", added.html);
        let now = world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.is(200).json();
        assert_eq!(now["memberUsers"].as_array().unwrap().len(), 3);
        let unknown = post(&world, &mut browser, &page, &own, &[("names", "nobody\n")]).await;
        assert!(unknown.html.contains("Nothing to do"), "{}", unknown.html);
        let empty = post(&world, &mut browser, &page, &own, &[("names", " \n")]).await;
        assert!(empty.status == 400 && empty.html.contains("Enter 1 to"), "{}", empty.html);
    }
}
