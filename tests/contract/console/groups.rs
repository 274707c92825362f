//! Groups within groups: members in pieces and by names, the tree step by step, and why a circle is refused.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{administrator, many::confirm, post};
use crate::id;

fn path(group: &Value, rest: &str) -> String {
    format!("/console/store/default/Group/{}{rest}", id(group))
}

/// Puts groups into a group.
async fn nest(world: &World, outer: &Value, inner: &[&Value]) {
    let body = json!({ "relatedIds": inner.iter().map(|group| id(group)).collect::<Vec<_>>() });
    world.admin.post(&world.path(&format!("/Group/{}/membergroups", id(outer))), body).await.expect(202);
}

/// Users with these numbers, in a group.
async fn crew(world: &World, group: &Value, count: usize) {
    let bodies: Vec<Value> =
        (0..count).map(|number| json!({ "loginName": format!("crew{number:04}") })).collect();
    let made = world.admin.post(&world.path("/User/batch"), json!(bodies)).await.is(200).json();
    let ids: Vec<&str> = made.as_array().unwrap().iter().map(id).collect();
    world
        .admin
        .post(&world.path(&format!("/Group/{}/users", id(group))), json!({ "relatedIds": ids }))
        .await
        .expect(202);
}

on_both_engines! {
    /// A group's page shows some of its members, and the page of its members goes on; none reads them all.
    async fn members_are_read_in_pieces(world: World) {
        let mut browser = administrator(&world).await;
        let group = world.group("Crew").await;
        crew(&world, &group, 130).await;
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
        let told = post(&world, &mut browser, &users, "/console/store/default/User/batch", &fields).await;
        assert!(told.html.contains("130 to be changed") && told.html.contains("Group: Crew"), "{}", told.html);
        let missing = browser.open("/console/store/default/Group/0192f0c1-2b3a-7c4d-8e5f-6a7b8c9d0e1f").await;
        assert_eq!(missing.status, 404);
    }

    async fn the_tree_is_opened_step_by_step(world: World) {
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
        let turn = rest.split('"').next().unwrap().replace("&amp;", "&");
        let opened = browser.open(turn.split('#').next().unwrap()).await;
        assert!(opened.html.contains(">Parsers</a>") && opened.html.contains(">All</a>"), "{}", opened.html);
        let empty = browser.open(&path(&makers, &format!("/tree?down={}.{}", id(&coders), id(&parsers)))).await;
        assert!(empty.html.contains("None"), "{}", empty.html);
    }

    /// A circle is refused with the way that leads around, from either side.
    async fn a_circle_is_told_with_its_path(world: World) {
        let mut browser = administrator(&world).await;
        let [all, makers, coders] = [world.group("All").await, world.group("Makers").await, world.group("Coders").await];
        nest(&world, &all, &[&makers]).await;
        nest(&world, &makers, &[&coders]).await;
        for (group, relation, other) in [(&coders, "memberGroups", &all), (&all, "parentGroups", &coders)] {
            let own = path(group, &format!("/relation/{relation}"));
            let page = browser.open(&own).await;
            let told = post(&world, &mut browser, &page, &format!("{own}/add"), &[("id", id(other))]).await;
            assert_eq!(told.status, 409, "{}", told.html);
            for step in ["Coders is in Makers.", "Makers is in All."] {
                assert!(told.html.contains(step), "{step}: {}", told.html);
            }
        }
        let own = path(&all, "/relation/memberGroups");
        let page = browser.open(&own).await;
        let told = post(&world, &mut browser, &page, &format!("{own}/add"), &[("id", id(&all))]).await;
        assert!(told.status == 409 && told.html.contains("not put into itself"), "{}", told.html);
    }

    /// Who is found, a member already, unknown or there twice is told before anybody is added.
    async fn members_are_added_by_names(world: World) {
        let mut browser = administrator(&world).await;
        let group = world.group("Crew").await;
        for (login, mail) in [("grace", "grace@example.com"), ("alan", "shared@example.com"), ("emmy", "shared@example.com"), ("mary", "mary@example.com")] {
            world.admin.post(&world.path("/User"), json!({ "loginName": login, "emailAddress": mail })).await.expect(201);
        }
        crew(&world, &group, 1).await;
        let own = path(&group, "/members");
        let page = browser.open(&path(&group, "")).await;
        assert!(page.html.contains(&own), "{}", page.html);
        let names = "GRACE\nMary <mary@example.com>\ngrace@example.com\r\nnobody\n\nshared@example.com\ncrew0000\n";
        let told = post(&world, &mut browser, &page, &own, &[("names", names)]).await;
        for fact in ["2 to be added: grace, mary", "1 members already: crew0000", "1 unknown: nobody", "1 name several people: shared@example.com", "1 there twice: grace@example.com"] {
            assert!(told.html.contains(fact), "{fact}: {}", told.html);
        }
        let added = confirm(&world, &mut browser, &told, "/console/store/default/User/batch").await;
        assert!(added.html.contains("grace") && added.html.contains("Undo"), "the members are shown: {}", added.html);
        let now = world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.is(200).json();
        assert_eq!(now["memberUsers"].as_array().unwrap().len(), 3);
        let nobody = post(&world, &mut browser, &page, &own, &[("names", "nobody\n")]).await;
        assert!(nobody.html.contains("nothing to be done"), "{}", nobody.html);
        let empty = post(&world, &mut browser, &page, &own, &[("names", " \n")]).await;
        assert!(empty.status == 400 && empty.html.contains("Name 1 to"), "{}", empty.html);
    }
}
