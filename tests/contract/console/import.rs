//! People from a file: checked cell by cell, then imported at once, or not at all.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{Browser, Page, administrator, encode, post};
use crate::{each, id};

const PATH: &str = "/console/store/default/User/import";

/// Checks a table, or imports it as these numbers say.
async fn send(world: &World, browser: &mut Browser, text: &str, sure: &str) -> Page {
    let page = browser.open(PATH).await;
    post(world, browser, &page, PATH, &[("text", text), ("sure", sure)]).await
}

/// The numbers that a page asks to confirm.
fn sure(page: &Page) -> String {
    let rest = page.html.split("name=\"sure\" value=\"").nth(1);
    rest.unwrap_or_else(|| panic!("nothing to confirm: {}", page.html)).split('"').next().unwrap().to_owned()
}

async fn named(world: &World, login_name: &str) -> Value {
    let filter = encode(&format!("loginName eq \"{login_name}\""));
    world.admin.get(&world.path(&format!("/User?filter={filter}"))).await.is(200).json()[0].clone()
}

on_both_engines! {
    async fn people_are_made_changed_and_left(world: World) {
        let mut browser = administrator(&world).await;
        world.group("Sales").await;
        world.group("R&D, Berlin").await;
        let old = json!({ "loginName": "grace", "firstName": "Grace", "emailAddress": "g@example.com", "emailAddressConfirmed": true, "nickname": "Amazing" });
        world.admin.post(&world.path("/User"), old).await.expect(201);
        world.admin.post(&world.path("/User"), json!({ "loginName": "alan", "firstName": "Alan" })).await.expect(201);
        let text = "Benutzername;Vorname;E-Mail;Aktiv;userValidTo;Gruppen;Abteilung\r\n\
            ada2;Ada;ada2@example.com;ja;31.12.2027;Sales|R&D, Berlin;Math\r\n\
            GRACE;Grace;hopper@example.com;nein;;sales;Navy\r\n\
            alan;Alan;;;;;\r\n";
        let list = browser.open("/console/store/default/User").await;
        assert!(list.html.contains(PATH), "{}", list.html);
        let told = send(&world, &mut browser, text, "").await;
        assert_eq!(sure(&told), "1/1/1/3", "{}", told.html);
        assert!(told.html.contains("Abteilung") && told.html.contains("ada2"), "{}", told.html);
        assert!(named(&world, "ada2").await.is_null(), "a check makes nobody");
        let done = send(&world, &mut browser, text, &sure(&told)).await;
        assert!(done.html.contains("Imported"), "{}", done.html);
        let (ada, grace) = (named(&world, "ada2").await, named(&world, "grace").await);
        assert_eq!(each(&ada["memberOfGroups"], "name"), ["Sales", "R&D, Berlin"]);
        assert_eq!((&ada["userValidTo"], &ada["isUserActive"]), (&json!("2027-12-31T00:00:00.000Z"), &json!(true)));
        assert_eq!((&grace["emailAddress"], &grace["emailAddressConfirmed"]), (&json!("hopper@example.com"), &json!(false)), "another address is not confirmed");
        assert_eq!((&grace["nickname"], &grace["isUserActive"]), (&json!("Amazing"), &json!(false)), "what no cell says stays");
        // the same form again finds nothing to do
        let again = send(&world, &mut browser, text, &sure(&told)).await;
        assert!(again.html.contains("nothing to be done"), "{}", again.html);
    }

    /// What is wrong is told by line, column and cell, and nothing is done.
    async fn wrong_cells_stop_all(world: World) {
        let mut browser = administrator(&world).await;
        world.user("taken").await;
        let text = "loginName,emailAddress,isUserActive,groups,locale\n\
            good,good@example.com,yes,,\n\
            bad,no address,yes,,\n\
            worse,w@example.com,perhaps,,\n\
            lost,l@example.com,yes,Nowhere,\n\
            good,again@example.com,yes,,\n\
            ,nobody@example.com,yes,,\n\
            taken,,,,<b onx>\n";
        let told = send(&world, &mut browser, text, "1/0/0/0").await;
        assert_eq!(told.status, 400, "{}", told.html);
        for (line, what) in [(3, "E-mail address"), (4, "perhaps"), (5, "Nowhere"), (6, "in line 2"), (7, "no login name"), (8, "&lt;b onx&gt;")] {
            let row = told.html.split(&format!("Line {line}</th>")).nth(1).unwrap_or_else(|| panic!("{line}: {}", told.html));
            assert!(row.split("</tr>").next().unwrap().contains(what), "{line} {what}: {row}");
        }
        assert!(!told.html.contains("name=\"sure\"") && !told.html.contains("<b onx>"), "{}", told.html);
        assert!(told.html.contains("no address,yes"), "what was typed stays: {}", told.html);
        assert!(named(&world, "good").await.is_null());
    }

    /// What is no table is said in a sentence.
    async fn what_is_no_table_is_refused(world: World) {
        let mut browser = administrator(&world).await;
        let many: String = (0..10_001).map(|number| format!("u{number}\n")).collect();
        for (text, said) in [
            ("", "There is no table"),
            ("loginName\n", "There is no table"),
            ("firstName\nAda", "No column is called Login name"),
            ("loginName,Benutzername\na,b", "Two columns are one field: Benutzername"),
            ("loginName\n\"a", "begin in line 2 do not end"),
            (&format!("loginName\n{many}"), "At most 10000 people"),
        ] {
            let told = send(&world, &mut browser, text, "").await;
            assert!(told.status == 400 && told.html.contains(said), "{said}: {}", &told.html[..told.html.len().min(9_000)]);
        }
    }

    /// What was told is what is done: where it changed meanwhile it is told again.
    async fn another_plan_is_told_again(world: World) {
        let mut browser = administrator(&world).await;
        let text = "loginName,firstName\nnew.one,New\nold.one,Old\n";
        let told = send(&world, &mut browser, text, "").await;
        assert_eq!(sure(&told), "2/0/0/0");
        world.admin.post(&world.path("/User"), json!({ "loginName": "old.one", "firstName": "Elder" })).await.expect(201);
        let again = send(&world, &mut browser, text, &sure(&told)).await;
        assert_eq!(sure(&again), "1/1/0/0", "{}", again.html);
        assert!(named(&world, "new.one").await.is_null());
        send(&world, &mut browser, text, &sure(&again)).await.answer.expect(200);
        assert_eq!(named(&world, "old.one").await["firstName"], json!("Old"));
    }

    /// Many at once; one wrong cell of them is found.
    async fn many_are_imported(world: World) {
        let mut browser = administrator(&world).await;
        let group = world.group("Crew").await;
        let rows: String = (0..1_200).map(|number| format!("crew{number:04},Crew,Number {number},c{number}@example.com,Crew\n")).collect();
        let text = format!("login,first name,last name,mail,groups\n{rows}");
        let wrong = send(&world, &mut browser, &text.replace("c777@example.com", "c777"), "").await;
        assert!(wrong.html.contains("Line 779</th>") && wrong.html.contains("<b>1199</b>") && wrong.html.matches("scope=\"row\"").count() == 1, "{}", &wrong.html[..4_000]);
        let told = send(&world, &mut browser, &text, "").await;
        assert_eq!(sure(&told), "1200/0/0/1200");
        let done = send(&world, &mut browser, &text, &sure(&told)).await;
        assert!(done.html.contains("Imported"), "{}", &done.html[..4_000]);
        let members = world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.is(200).json();
        assert_eq!(members["memberUsers"].as_array().unwrap().len(), 1_200);
    }
}
